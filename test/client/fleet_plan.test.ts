/** `placement apply` without a service: random files on random fleets. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { parse } from 'yaml';
import { withoutDrain } from '../../src/cli/drain_marks.ts';
import { CommandFailure } from '../../src/cli/exit_codes.ts';
import { exportFleet, yamlOf } from '../../src/cli/fleet/export_fleet.ts';
import { type FleetFile, readFleetFile } from '../../src/cli/fleet/fleet_file.ts';
import { type FleetPlan, type ProviderStep, planApply } from '../../src/cli/fleet/plan.ts';
import { isPoolMark, markOfPool } from '../../src/cli/fleet/pool_mark.ts';
import { providerUuid, type WholeProvider } from '../../src/client/index.ts';
import { aggregates, classes, names, randomFleet, traits } from './random_fleet.ts';

const known = { classes: new Set(classes), traits: new Set(traits) };

/** The text of a file: any of the names in any trees, with some of the keys. */
const fileText = fc
  .tuple(
    fc.shuffledSubarray(names),
    fc.infiniteStream(fc.nat()),
    fc.infiniteStream(
      fc.record(
        {
          inventories: fc.dictionary(
            fc.constantFrom(...classes, 'CUSTOM_NEW'),
            fc.oneof(
              fc.integer({ min: 8, max: 9 }),
              fc.record(
                { total: fc.integer({ min: 8, max: 99 }), reserved: fc.nat({ max: 8 }) },
                { requiredKeys: ['total'] },
              ),
            ),
          ),
          traits: fc.subarray([...traits, 'CUSTOM_NEW']),
          aggregates: fc.subarray([...aggregates, 'rack-1']),
        },
        { requiredKeys: [] },
      ),
    ),
    fc.constantFrom('ours', undefined),
  )
  .map(([chosen, parents, parts, pool]) => {
    type Entry = { readonly name: string; readonly children: Entry[] };
    const roots: Entry[] = [];
    const all: Entry[] = [];
    for (const [index, name] of chosen.entries()) {
      const entry: Entry = { name, ...parts.next().value, children: [] };
      const parent = all[(parents.next().value % (index + 2)) - 1];
      (parent?.children ?? roots).push(entry);
      all.push(entry);
    }
    return JSON.stringify({ pool, providers: roots });
  });

const rootOf = (provider: WholeProvider, byUuid: ReadonlyMap<string, WholeProvider>): string => {
  let [above, level]: [WholeProvider, number] = [provider, 0];
  for (; above.parent_provider_uuid !== null; level++) {
    assert.ok(level < 100, `${provider.name} is in a loop`);
    const parent = byUuid.get(above.parent_provider_uuid);
    assert.ok(parent, `${above.name} has a parent that there is not`);
    above = parent;
  }
  return above.uuid;
};

/** Does one step as the service would, and checks that the service would. */
function done(providers: readonly WholeProvider[], step: ProviderStep): readonly WholeProvider[] {
  const before = providers.find(({ uuid }) => uuid === step.uuid);
  assert.equal(before?.generation, step.generation);
  assert.ok(before !== undefined || providers.every(({ name }) => name !== step.name), `${step.name} is made twice`);
  const { parentUuid, ...parts } = step.writes;
  const written = {
    inventories: parts.inventories ?? before?.inventories ?? {},
    traits: parts.traits ?? before?.traits ?? [],
    aggregates: parts.aggregates ?? before?.aggregates ?? [],
  };
  for (const { total, reserved } of Object.values(written.inventories)) assert.ok(reserved <= total);
  const after: WholeProvider = {
    uuid: step.uuid,
    name: step.name,
    generation: (before?.generation ?? 0) + 1,
    parent_provider_uuid: parentUuid === undefined ? (before?.parent_provider_uuid ?? null) : parentUuid,
    root_provider_uuid: step.uuid,
    usages: before?.usages ?? {},
    ...written,
  };
  const others = providers.filter(({ uuid }) => uuid !== step.uuid);
  const byUuid = new Map([...others, after].map((each) => [each.uuid, each]));
  return [...byUuid.values()].map((each) => ({ ...each, root_provider_uuid: rootOf(each, byUuid) }));
}

/** What a plan makes of a fleet. */
function carriedOut(providers: readonly WholeProvider[], plan: FleetPlan): readonly WholeProvider[] {
  let now = plan.waves.flat().reduce(done, providers);
  for (const { uuid, usages } of plan.deletions.flat()) {
    assert.ok(now.every(({ parent_provider_uuid: parent }) => parent !== uuid));
    assert.ok(Object.values(usages).every((used) => used === 0));
    now = now.filter((each) => each.uuid !== uuid);
  }
  return now;
}

const sortedParts = (provider: WholeProvider | undefined) =>
  provider && {
    ...provider,
    traits: provider.traits.toSorted(),
    aggregates: provider.aggregates.toSorted(),
  };

const withNames = ({ classes: some, traits: others }: typeof known, plan: FleetPlan) => ({
  classes: new Set([...some, ...plan.newClasses]),
  traits: new Set([...others, ...plan.newTraits]),
});

suite('the plan of placement apply', () => {
  test('a plan leads to the content of the file, changes nothing else, and is empty the second time', () => {
    let [applied, refused] = [0, 0];
    fc.assert(
      fc.property(randomFleet, fileText, fc.boolean(), (before, text, prune) => {
        const file: FleetFile = readFleetFile(text, 'file');
        const plan = planApply(file, before, known, { prune });
        if (plan.problems.length > 0) {
          refused++;
          return;
        }
        applied++;
        const after = carriedOut(before, plan);
        const byName = new Map(after.map((each) => [each.name, each]));
        const earlier = new Map(before.map((each) => [each.name, each]));
        const drained = new Set<string>();
        for (const wanted of file.providers) {
          const [now, was] = [byName.get(wanted.name), earlier.get(wanted.name)];
          assert.ok(now);
          assert.equal(now.uuid, was?.uuid ?? providerUuid(wanted.name));
          assert.equal(now.parent_provider_uuid, wanted.parent === null ? null : byName.get(wanted.parent)?.uuid);
          // A drain stays: as much is reserved as there is, and what the file says holds without it.
          const wasDrained = was !== undefined && withoutDrain(was) !== was;
          // What is made below a drained provider is drained, too.
          const isMade = was === undefined || (was.generation === 0 && was.uuid === providerUuid(wanted.name));
          if (wasDrained || (isMade && drained.has(`${wanted.parent}`))) drained.add(wanted.name);
          assert.equal(withoutDrain(now) !== now, drained.has(wanted.name));
          if (drained.has(wanted.name))
            for (const { total, reserved } of Object.values(now.inventories)) assert.equal(reserved, total);
          const [open, openBefore] = [withoutDrain(now), was && withoutDrain(was)];
          assert.deepEqual(
            open.traits.filter((trait) => !isPoolMark(trait)).toSorted(),
            (wanted.traits ?? openBefore?.traits.filter((trait) => !isPoolMark(trait)) ?? []).toSorted(),
          );
          const marks = was?.traits.filter(isPoolMark) ?? (file.pool === undefined ? [] : [markOfPool(file.pool)]);
          assert.deepEqual(open.traits.filter(isPoolMark).toSorted(), marks.toSorted());
          assert.deepEqual(open.aggregates.toSorted(), (wanted.aggregates ?? was?.aggregates ?? []).toSorted());
          if (wanted.inventories === undefined) assert.deepEqual(open.inventories, openBefore?.inventories ?? {});
          else {
            assert.deepEqual(Object.keys(open.inventories).toSorted(), Object.keys(wanted.inventories).toSorted());
            for (const [name, given] of Object.entries(wanted.inventories)) {
              assert.deepEqual(
                { ...open.inventories[name], ...openBefore?.inventories[name], ...given },
                open.inventories[name],
              );
            }
          }
        }
        const inFile = new Set(file.providers.map(({ name }) => name));
        for (const other of before.filter(({ name }) => !inFile.has(name))) {
          const now = byName.get(other.name);
          if (now === undefined) {
            assert.ok(prune && file.pool !== undefined && other.traits.includes(markOfPool(file.pool)), other.name);
          } else {
            assert.deepEqual({ ...now, root_provider_uuid: '' }, { ...other, root_provider_uuid: '' });
          }
        }
        const again = planApply(file, after, withNames(known, plan), { prune });
        assert.deepEqual(
          [again.waves, again.deletions, again.newClasses, again.newTraits, again.problems],
          [[], [], [], [], []],
        );
      }),
      { numRuns: 800 },
    );
    assert.ok(applied > 100 && refused > 10, `${applied} applied, ${refused} refused`);
  });

  test('makes the fleet that was exported of an empty service, and changes nothing on that service', () => {
    fc.assert(
      fc.property(randomFleet, fc.boolean(), (before, asYaml) => {
        const exported = exportFleet(before, new Map([[aggregates[0] ?? '', 'rack "1"']]));
        const file = readFleetFile(asYaml ? yamlOf(exported) : JSON.stringify(exported), 'file');
        const here = planApply(file, before, known, { prune: false });
        assert.deepEqual([here.waves, here.problems], [[], []]);
        // Other programs read YAML 1.1, where a plain `no` is false.
        assert.deepEqual(parse(yamlOf(exported), { version: '1.1' }), JSON.parse(JSON.stringify(exported)));
        const plan = planApply(
          file,
          [],
          { classes: new Set(['VCPU', 'MEMORY_MB']), traits: new Set(['HW_CPU_X86_VMX']) },
          { prune: false },
        );
        assert.deepEqual(plan.problems, []);
        const withoutMarks = (each: WholeProvider) => {
          const { traits: all, ...open } = withoutDrain(each);
          return sortedParts({ ...open, generation: 0, usages: {}, traits: all.filter((trait) => !isPoolMark(trait)) });
        };
        const byName = (one: { readonly name: string }, other: { readonly name: string }) =>
          one.name < other.name ? -1 : 1;
        assert.deepEqual(
          carriedOut([], plan).toSorted(byName).map(withoutMarks),
          before.toSorted(byName).map(withoutMarks),
        );
      }),
      { numRuns: 200 },
    );
  });
});

suite('a file of placement apply', () => {
  const refuses = (content: string, ...expected: readonly string[]) =>
    assert.throws(
      () => readFleetFile(content, 'pool.yaml'),
      (error) => {
        assert.ok(error instanceof CommandFailure && error.ending === 'wrongInput');
        assert.deepEqual(error.message.split('\n'), expected);
        return true;
      },
    );

  test('is refused with the line, the path and the value of each mistake', () => {
    refuses(
      `providers:
  - name: 12
    inventories:
      VCPU: "8"
      DISK_GB: { reserved: 3, totl: 4 }
      PGPU: { total: 0 }
    traits:
    children:
      - name: cell
        traits: [hw, CUSTOM_DRAINED_VCPU_1, CUSTOM_POOL_OF_FILE_X]
        uuid: none
`,
      'pool.yaml:2: providers[0].name: 12 is no text; put it in quotes if it is meant as one',
      'pool.yaml:4: providers[0].inventories.VCPU: "8" is no whole number from 1 to 2147483647',
      'pool.yaml:5: providers[0].inventories.DISK_GB.total: is missing',
      'pool.yaml:5: providers[0].inventories.DISK_GB.totl: is no key of an inventory, which has total, reserved, min_unit, max_unit, step_size, allocation_ratio',
      'pool.yaml:6: providers[0].inventories.PGPU.total: 0 is no whole number from 1 to 2147483647',
      'pool.yaml:7: providers[0].traits: null is no list; write [] for none, or leave the key out to let it as it is',
      'pool.yaml:11: providers[0].children[0].uuid: "none" is no UUID',
      'pool.yaml:10: providers[0].children[0].traits[0]: "hw" is no trait: its name has capital letters, digits and _',
      'pool.yaml:10: providers[0].children[0].traits[1]: "CUSTOM_DRAINED_VCPU_1" is the mark of "placement drain", which only that command gives and takes',
      'pool.yaml:10: providers[0].children[0].traits[2]: "CUSTOM_POOL_OF_FILE_X" is the mark of this command: write the key pool instead',
    );
    refuses(
      'providers:\n- name: a\n- {name: b, children: [{name: a}]}',
      'pool.yaml:3: providers[1].children[0].name: "a" is also the name of providers[0]; each provider has a name of its own',
    );
    refuses('providers: [{name: a, name: b}]', 'pool.yaml:1: Map keys must be unique');
    refuses(
      'pool: A-1\nproviders: []',
      'pool.yaml:1: pool: "A-1" is no name of a pool: 1 to 200 small letters, digits and _',
    );
    refuses('[]', 'pool.yaml: providers: is missing');
    refuses('', 'pool.yaml: the file: is empty; it has the keys pool, aggregates, providers');
    refuses(
      'providers: [{name: a, inventories: {constructor: 1}}]',
      'pool.yaml:1: providers[0].inventories: {"constructor":1} has a key that is none of resource classes',
    );
    const nested = (levels: number) => '{"name": "a", "children": ['.repeat(levels);
    assert.throws(
      () => readFleetFile(`{"providers": [${nested(150)}${']}'.repeat(150)}]}`, 'f'),
      /nested deeper than 100 levels/,
    );
    assert.throws(() => readFleetFile(`{"providers": [${nested(20_000)}`, 'f'), /nested deeper than 100 levels/);
    const ofItself = 'providers: &all\n  - name: a\n    children: *all\n';
    assert.throws(() => readFleetFile(ofItself, 'f'), /^CommandFailure: f:3: \*all is a part of itself$/);
    // Twice in itself: to go through its 100 levels would take for ever.
    refuses('providers:\n- &a\n  name: a\n  children: [*a, *a]', 'pool.yaml:4: *a is a part of itself');
    refuses(
      'providers:\n- &a\n  name: &a a\n  children: [&a { name: b, children: *a }]',
      'pool.yaml:4: *a is a part of itself',
    );
    refuses('providers:\n- name: !secret a', 'pool.yaml:2: Unresolved tag: !secret');
  });

  test('may give an anchor again: an alias means the last one before it', () => {
    const { providers } = readFleetFile(
      'providers: &a [&a { name: a }, { <<: *a, name: b, children: [{ name: c }] }]',
      'f',
    );
    assert.deepEqual(
      providers.map(({ name }) => name),
      ['a', 'b', 'c'],
    );
  });

  test('may use the anchors of YAML, and gives aggregates names', () => {
    const { providers, aggregateNames } = readFleetFile(
      `aggregates: { rack-1: A66E0000-0000-4000-8000-00000000000A }
providers:
  - &host { name: a, inventories: { VCPU: 8 }, aggregates: [rack-1, rack-2] }
  - { <<: *host, name: b }
`,
      'f',
    );
    assert.deepEqual(
      providers.map(({ name, inventories: stock, aggregates: groups }) => [name, stock, groups]),
      ['a', 'b'].map((name) => [name, { VCPU: { total: 8 } }, [aggregates[0], 'f496041a-a679-5486-bfd9-91f854fc5418']]),
    );
    assert.deepEqual([...aggregateNames.values()].toSorted(), ['rack-1', 'rack-2']);
  });

  test('is refused as a whole where the service could not take every part of it', () => {
    const used: WholeProvider = {
      uuid: providerUuid('renamed'),
      name: 'host',
      generation: 1,
      parent_provider_uuid: null,
      root_provider_uuid: providerUuid('renamed'),
      inventories: { VCPU: { total: 8, reserved: 4, min_unit: 1, max_unit: 8, step_size: 1, allocation_ratio: 1 } },
      usages: { VCPU: 2 },
      traits: [],
      aggregates: [],
    };
    const problemsOf = (content: string) =>
      planApply(readFleetFile(content, 'f'), [used], known, { prune: false }).problems;
    assert.deepEqual(problemsOf('providers: [{name: host, inventories: {}}]'), [
      'f:1: providers[0].inventories: VCPU is missing, and 2 of it is in use on host',
    ]);
    assert.deepEqual(problemsOf('providers: [{name: host, inventories: {VCPU: 3}}]'), [
      'f:1: providers[0].inventories.VCPU: reserved is 4, more than the total of 3',
    ]);
    assert.deepEqual(problemsOf('providers: [{name: b, inventories: {VCP: 3}, traits: [HW_FOO]}]'), [
      'f:1: providers[0].inventories.VCP: there is no such resource class; is it VCPU?',
      'f:1: providers[0].traits[0]: there is no trait HW_FOO; one that can be made begins with CUSTOM_, such as CUSTOM_HW_FOO',
    ]);
    assert.deepEqual(problemsOf('providers: [{name: renamed}]'), [
      `f:1: providers[0].uuid: ${used.uuid} is the UUID of provider "host"; it was renamed: write its present name, or give a new provider another UUID by the key uuid`,
    ]);
  });
});
