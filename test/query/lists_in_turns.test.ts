/** Lists of providers: each is of one snapshot, though it is made in turns between which the fleet changes. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import type { Dependencies } from '../../src/api/dependencies.ts';
import { providerWriter, represent, shownProvider } from '../../src/api/resource_providers/answers.ts';
import { resourceProviderEndpoints } from '../../src/api/resource_providers/resource_providers.ts';
import { providerSummaryEndpoints } from '../../src/api/resource_providers/summaries.ts';
import type { Fleet, LivingFleet } from '../../src/fleet/model/fleet.ts';
import { blankProvider, inventoryOf, type Provider } from '../../src/fleet/model/provider.ts';
import { hasRoomFor } from '../../src/placement/inventory.ts';
import { ApiError } from '../../src/request/errors.ts';
import type { ApiRequest, Endpoint } from '../../src/rest/endpoint.ts';
import { parseQuery } from '../../src/rest/query_string.ts';
import { anyChange, type Change } from '../candidates/random_change.ts';
import { anyTopology } from '../candidates/random_topology.ts';
import {
  aggregates,
  classNames,
  emptyAggregate,
  nodeAt,
  providerUuid,
  rowsOf,
  traitNames,
} from '../candidates/topology.ts';
import { changeFleet } from '../fleet/change_fleet.ts';
import { type AllRows, createFleet } from '../fleet/made_up_fleet.ts';
import { turnsThatEnd } from '../support/chunks.ts';

const endpointOf = (endpoints: readonly Endpoint<Dependencies>[], path: string): Endpoint<Dependencies> =>
  endpoints.find((each) => each.method === 'GET' && each.path === path) ?? assert.fail(path);

const lists = {
  resource_providers: { endpoint: endpointOf(resourceProviderEndpoints, '/resource_providers'), version: 2004 },
  provider_summaries: { endpoint: endpointOf(providerSummaryEndpoints, '/provider_summaries'), version: 2004 },
} as const;
type List = keyof typeof lists;

type Turn = { readonly isOver: (rounds?: number) => boolean; readonly pass: () => void };
const alone: Turn = { isOver: () => false, pass: () => assert.fail('nothing pauses') };

/** What a list answers: its text, or that of its error. */
async function ask(list: List, { fleet, hold }: LivingFleet, search: string, { isOver, pass }: Turn): Promise<string> {
  const { endpoint, version } = lists[list];
  // The handlers of lists use no more of a request and of what they depend on.
  const request = {
    version,
    prefix: '',
    query: () => parseQuery(search),
    turns: () => ({ ...turnsThatEnd(isOver), pass: async () => pass() }),
  } as unknown as ApiRequest;
  const dependencies = { fleet: { fresh: async () => fleet, hold } } as unknown as Dependencies;
  try {
    const { body } = await endpoint.handle(request, dependencies);
    if (typeof body === 'string') return body;
    assert.ok(body instanceof Uint8Array, 'so little is one chunk');
    return Buffer.from(body).toString();
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

type Filter = readonly [name: string, value: string];
const either = <Value>(values: readonly Value[]) => fc.constantFrom(...values);
const some = (values: readonly string[]) => fc.subarray([...values], { minLength: 1 }).map((each) => each.join(','));
const filterOf = (name: string, value: fc.Arbitrary<string>): fc.Arbitrary<Filter> =>
  value.map((each) => [name, each] as const);
const uuid = fc.nat(7).map(providerUuid);
const groups = [...aggregates, emptyAggregate];
const shared = [
  filterOf('in_tree', uuid),
  filterOf(
    'required',
    fc.oneof(
      some(traitNames),
      some(traitNames).map((names) => `in:${names}`),
    ),
  ),
  filterOf(
    'required',
    either(traitNames).map((name) => `!${name}`),
  ),
  filterOf(
    'member_of',
    fc.oneof(
      either(groups),
      some(groups).map((each) => `in:${each}`),
    ),
  ),
  filterOf(
    'member_of',
    either(groups).map((each) => `!${each}`),
  ),
];
const filters = {
  resource_providers: [
    ...shared,
    filterOf('uuid', uuid),
    filterOf(
      'name',
      fc.nat(7).map((index) => `provider ${index}`),
    ),
    filterOf(
      'resources',
      fc.tuple(some(classNames), fc.integer({ min: 1, max: 4 })).map(([names, amount]) =>
        names
          .split(',')
          .map((name) => `${name}:${amount}`)
          .join(','),
      ),
    ),
    filterOf('resources', fc.constant('CUSTOM_NONE:1')),
    filterOf('required', fc.constant('CUSTOM_NONE')),
  ],
  provider_summaries: [
    ...shared,
    filterOf(
      'uuid',
      fc.array(uuid, { minLength: 1, maxLength: 4 }).map((each) => `in:${each.join(',')}`),
    ),
    filterOf('limit', fc.integer({ min: 1, max: 8 }).map(String)),
    filterOf('marker', uuid),
  ],
};
/** No parameter but `required` and `member_of` comes twice. */
const anySearch = (list: List): fc.Arbitrary<string> =>
  fc
    .array(fc.oneof(...filters[list]), { maxLength: 4 })
    .map((all) =>
      all.filter(
        ([name], index) => /^(required|member_of)$/.test(name) || all.findIndex((each) => each[0] === name) === index,
      ),
    )
    .map((all) => `?${new URLSearchParams(all.map(([name, value]): [string, string] => [name, value]))}`);

/** The topology, sometimes among many other providers: then there is more than one way to find the requested ones. */
const anyRows = fc.tuple(anyTopology, fc.constantFrom(0, 150, 150, 400)).map(([topology, more]) => {
  const others = Array.from({ length: more }, (_, index) => nodeAt(topology.length + index));
  const rows = rowsOf([...topology, ...others]);
  const providers = rows.providers.map((row) =>
    row.id > topology.length ? { ...row, name: `hôst ${row.id} ☃` } : row,
  );
  return { ...rows, providers };
});

/** A name that a filter may have looked for is another one from now on. */
const anyRename: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom('renameTrait' as const, 'renameClass' as const),
  at: fc.nat(20),
  what: fc.nat(20),
});

suite('whatever changes while a list is made, it shows the snapshot of its beginning', () => {
  for (const list of ['resource_providers', 'provider_summaries'] as const) {
    test(list, async () => {
      const seen = { pauses: 0, changes: 0, found: 0 };
      await fc.assert(
        fc.asyncProperty(
          anyRows,
          anySearch(list),
          fc.array(fc.oneof(anyChange, anyRename), { minLength: 1, maxLength: 8 }),
          fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
          async (rowsBefore, search, changes: readonly Change[], overs) => {
            let rows: AllRows = rowsBefore;
            const [still, living] = [createFleet(rows), createFleet(rows)];
            const left = [...changes];
            let checks = 0;
            const text = await ask(list, living, search, {
              isOver: () => overs[checks++ % overs.length] ?? false,
              pass: () => {
                seen.pauses += 1;
                const change = left.shift();
                if (change === undefined) return;
                seen.changes += 1;
                rows = changeFleet(living, rows, change);
              },
            });
            assert.equal(text, await ask(list, still, search, alone), search);
            if (text.includes('"name":')) seen.found += 1;
          },
        ),
        { numRuns: 500 },
      );
      assert.ok(seen.pauses > 500 && seen.changes > 200 && seen.found > 50, JSON.stringify(seen));
    });
  }
});

/** Whether a provider satisfies a filter of GET /resource_providers, by its own names alone. */
function satisfies(fleet: Fleet, provider: Provider, [name, value]: Filter): boolean {
  const own = {
    required: provider.traitIds.map((id) => fleet.traits.byId.get(id)?.name ?? ''),
    member_of: provider.aggregates,
  };
  if (name === 'uuid') return provider.uuid === value;
  if (name === 'name') return provider.name === value;
  if (name === 'in_tree') return fleet.byUuid.get(value)?.root === provider.root;
  if (name === 'resources') {
    return value.split(',').every((each) => {
      const [className = '', amount = ''] = each.split(':');
      const inventory = inventoryOf(provider, fleet.classes.byName.get(className)?.id ?? -1);
      return inventory !== undefined && hasRoomFor(inventory, Number(amount));
    });
  }
  assert.ok(name === 'required' || name === 'member_of');
  if (value.startsWith('!')) return !own[name].includes(value.slice(1));
  if (value.startsWith('in:'))
    return value
      .slice(3)
      .split(',')
      .some((each) => own[name].includes(each));
  return value.split(',').every((each) => own[name].includes(each));
}

test('GET /resource_providers finds the providers that satisfy all filters, in the order of their ids', async () => {
  let found = 0;
  await fc.assert(
    fc.asyncProperty(anyRows, anySearch('resource_providers'), async (rows, search) => {
      const living = createFleet(rows);
      const { fleet } = living;
      const text = await ask('resource_providers', living, search, alone);
      const filters = [...new URLSearchParams(search)];
      if (!text.startsWith('{')) {
        assert.match(text, /CUSTOM_NONE/);
        return;
      }
      const uuids = (JSON.parse(text) as { resource_providers: { uuid: string }[] }).resource_providers.map(
        (each) => each.uuid,
      );
      const expected = [...fleet.byId.values()].filter((each) =>
        filters.every((filter) => satisfies(fleet, each, filter)),
      );
      const inOrder = search.includes('in_tree') ? uuids.toSorted() : uuids;
      assert.deepEqual(
        inOrder,
        expected.map((each) => each.uuid),
        search,
      );
      found += uuids.length > 0 ? 1 : 0;
    }),
    { numRuns: 1000 },
  );
  assert.ok(found > 100);
});

test('a list checks its turn for each provider that it filters or shows, and counts the names of its filters', async () => {
  const count = 2000;
  const living = createFleet(rowsOf(Array.from({ length: count }, (_, index) => nodeAt(index))));
  const many = Array.from({ length: 500 }, (_, index) =>
    emptyAggregate.replace(/^......../, `${index}`.padStart(8, '0')),
  );
  for (const list of ['resource_providers', 'provider_summaries'] as const) {
    for (const search of ['?', `?member_of=!in:${many}`, '?required=!CUSTOM_RARE']) {
      let passes = 0;
      const pass = () => {
        passes += 1;
      };
      await ask(list, living, search, { isOver: () => true, pass });
      assert.ok(passes >= count / 2, `${list} ${search.slice(0, 30)}: ${passes}`);
    }
    const rounds: (number | undefined)[] = [];
    const isOver = (more?: number) => {
      rounds.push(more);
      return false;
    };
    await ask(list, living, `?member_of=!in:${many}`, { isOver, pass: () => assert.fail() });
    assert.ok(rounds.filter((each) => (each ?? 1) > 500).length >= count / 2, 'each name takes time');
  }
});

test('a list shows each provider as it is shown alone, whatever its name, its UUID and the prefix of links are', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 20 });
  fc.assert(
    fc.property(
      fc.tuple(text, text, fc.option(text), text, fc.nat(), fc.constantFrom('', '/placement', '/ä"\\')),
      fc.constantFrom(1000, 1001, 1005, 1006, 1010, 1011, 1013, 1014, 1039, 2001, 2006),
      ([name, own, parent, root, generation, prefix], version) => {
        const others = [parent ?? '', root].map((each) => ({ ...blankProvider(2), uuid: each }));
        const provider: Provider = {
          ...blankProvider(1),
          name,
          uuid: own,
          generation,
          parent: parent === null ? undefined : others[0],
          root: others[1] ?? assert.fail(),
        };
        const request = { version, prefix } as ApiRequest; // no more of it is used
        assert.equal(
          providerWriter(request)(provider),
          JSON.stringify(represent(shownProvider(provider), request).json),
        );
      },
    ),
    { numRuns: 2000 },
  );
});
