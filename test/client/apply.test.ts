/** `placement apply` and `placement export` on a real service. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { withoutDrain } from '../../src/cli/drain_marks.ts';
import { exitCodes } from '../../src/cli/exit_codes.ts';
import { isPoolMark } from '../../src/cli/fleet/pool_mark.ts';
import { connect, providerUuid, type WholeProvider } from '../../src/client/index.ts';
import { commandsOn, hostedPlacement, startPlacement } from './command.ts';
import { randomFleet } from './random_fleet.ts';
import { forward, startFront, startServer, type TestServer } from './servers.ts';

let server: TestServer;
let folder: string;
before(async () => {
  server = await startServer();
  folder = await mkdtemp(path.join(os.tmpdir(), 'placement-apply-'));
});
after(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

const { env, run, fails } = commandsOn(() => server);
const clientOf = ({ url }: Pick<TestServer, 'url'>) => connect({ endpoint: url, auth: 'admin', version: '2.9' });

/** Writes a file. @returns its path */
async function file(content: string, name = 'pool.yaml'): Promise<string> {
  const at = path.join(folder, name);
  await writeFile(at, content);
  return at;
}

/** The methods of the requests that a server received since the last call, but for reads. */
function writesTo({ seen }: TestServer): readonly string[] {
  return seen.splice(0).flatMap(({ method, url }) => (method === 'GET' ? [] : [`${method} ${url}`]));
}

const wholeFleet = async (of: TestServer): Promise<readonly WholeProvider[]> =>
  Array.fromAsync(clientOf(of).providerSummaries.list());

const provider = async (name: string): Promise<WholeProvider> => {
  const found = (await wholeFleet(server)).find((each) => each.name === name);
  assert.ok(found, name);
  return found;
};

const pool = `
pool: gpus
providers:
  - name: gpu-1
    inventories: { MEMORY_MB: { total: 65536, reserved: 512 } }
    traits: [HW_CPU_X86_AVX2]
    aggregates: [rack-7]
    children:
      - name: gpu-1-card-0
        inventories: { PGPU: 4, CUSTOM_SLOT: { total: 2, allocation_ratio: 1.1 } }
        traits: [CUSTOM_GPU_80GB]
  - name: gpu-2
`;

test('a fleet is made of a file: shown first, then written, and nothing the second time', async () => {
  const at = await file(pool);
  const difference = `+ resource class CUSTOM_SLOT
+ trait CUSTOM_POOL_OF_FILE_GPUS
+ trait CUSTOM_GPU_80GB
+ gpu-1 (new)
    + inventory MEMORY_MB: total 65536, reserved 512
    + trait HW_CPU_X86_AVX2
    + aggregate rack-7
+ gpu-2 (new)
+ gpu-1-card-0 (new, below gpu-1)
    + inventory PGPU: total 4
    + inventory CUSTOM_SLOT: total 2, allocation_ratio 1.1
    + trait CUSTOM_GPU_80GB
`;
  writesTo(server);
  assert.equal(
    await run('apply', '-f', at, '--dry-run'),
    `${difference}3 to make, 0 to change, 0 to delete, 0 as the file says. Nothing was written.\n`,
  );
  assert.deepEqual(writesTo(server), []);
  assert.equal(await run('apply', '-f', at), `${difference}Done: 3 made, 0 changed, 0 deleted.\n`);
  const made = await provider('gpu-1');
  assert.equal(made.uuid, '6add7cb0-3af3-5be7-bcdb-83423f808711', 'the UUIDv5 of the name');
  assert.equal((await provider('gpu-1-card-0')).parent_provider_uuid, made.uuid);
  writesTo(server);
  assert.equal(await run('apply', '-f', at), 'Nothing to change: 3 providers are as the file says.\n');
  const again = JSON.parse(await run('apply', '-f', at, '--prune', '--json'));
  assert.deepEqual([again.providers, again.unchanged, again.applied.made], [[], 3, 0]);
  assert.equal(
    await run('export', '--names-from', at),
    `pool: gpus
aggregates:
  rack-7: ${made.aggregates[0]}
providers:
  - name: gpu-1
    inventories:
      MEMORY_MB: { total: 65536, reserved: 512, min_unit: 1, max_unit: 2147483647, step_size: 1, allocation_ratio: 1 }
    traits:
      - HW_CPU_X86_AVX2
    aggregates:
      - rack-7
    children:
      - name: gpu-1-card-0
        inventories:
          PGPU: { total: 4, reserved: 0, min_unit: 1, max_unit: 2147483647, step_size: 1, allocation_ratio: 1 }
          CUSTOM_SLOT: { total: 2, reserved: 0, min_unit: 1, max_unit: 2147483647, step_size: 1, allocation_ratio: 1.1 }
        traits:
          - CUSTOM_GPU_80GB
        aggregates: []
  - name: gpu-2
    inventories: {}
    traits: []
    aggregates: []
`,
  );
  const one = await file(await run('export', 'gpu-1-card-0', '--json'), 'one.json');
  assert.equal(await run('apply', '-f', one), 'Nothing to change: 2 providers are as the file says.\n');
  assert.deepEqual(writesTo(server), []);
});

test('apply leaves unnamed values as they are, changes named ones, and moves providers', async () => {
  await run('trait', 'add', 'gpu-1', 'HW_CPU_X86_VMX');
  await run('inventory', 'set', 'gpu-1', 'VCPU=8');
  const at = await file(`
providers:
  - name: gpu-1
    traits: [HW_CPU_X86_VMX]
  - name: gpu-2
    children:
      - name: gpu-1-card-0
        inventories: { PGPU: 8, CUSTOM_SLOT: 3 }
`);
  assert.equal(
    await run('apply', '-f', at),
    `~ gpu-1
    - trait HW_CPU_X86_AVX2
~ gpu-1-card-0
    parent: gpu-1 -> gpu-2
    PGPU: total 4 -> 8
    CUSTOM_SLOT: total 2 -> 3
Done: 0 made, 2 changed, 0 deleted.
`,
  );
  const [host, card] = [await provider('gpu-1'), await provider('gpu-1-card-0')];
  assert.deepEqual(host.traits.toSorted(), ['CUSTOM_POOL_OF_FILE_GPUS', 'HW_CPU_X86_VMX']);
  assert.deepEqual([host.inventories.VCPU?.total, host.aggregates.length], [8, 1]);
  assert.equal(card.inventories.CUSTOM_SLOT?.allocation_ratio, 1.1);
  assert.equal(card.root_provider_uuid, providerUuid('gpu-2'));
  assert.ok(card.traits.includes('CUSTOM_GPU_80GB'));
});

test('a new name that is similar to an existing one leads to a question', async () => {
  const fleet = (...traits: readonly string[]) =>
    file(`providers:\n  - name: near\n    inventories: { PGPU: 1 }\n    traits: [${traits.join(', ')}]\n`, 'near.yaml');
  await run('apply', '-f', await fleet('CUSTOM_GPU_80GB', 'CUSTOM_RACK_1'));
  const shown = await run('apply', '-f', await fleet('CUSTOM_GPU_80BG', 'CUSTOM_RACK_2', 'CUSTOM_OTHER'), '--dry-run');
  assert.match(shown, /^\+ trait CUSTOM_GPU_80BG \(is it CUSTOM_GPU_80GB, which exists\?\)$/m);
  assert.match(shown, /^\+ trait CUSTOM_RACK_2$/m);
  assert.match(shown, /^\+ trait CUSTOM_OTHER$/m);
  const classes = await file('providers:\n  - name: near\n    inventories: { CUSTOM_CARDS: 1 }\n', 'near.yaml');
  await run('class', 'create', 'CUSTOM_CARD');
  assert.match(
    await run('apply', '-f', classes, '--dry-run'),
    /^\+ resource class CUSTOM_CARDS \(is it CUSTOM_CARD, which exists\?\)$/m,
  );
  await run('provider', 'delete', 'near');
});

test('a total below what is used is written, and a warning says so', async () => {
  const fleet = (total: number) =>
    file(`providers: [{ name: less, inventories: { PGPU: ${total}, VCPU: 1 } }]`, 'less.yaml');
  await run('apply', '-f', await fleet(4));
  await run('allocation', 'set', 'job-less', '-a', 'rp=less,PGPU=2', '--project', 'ci');
  for (const more of [['--dry-run'], []]) {
    const args = ['apply', '-f', await fleet(1), ...more];
    const { code, stdout, stderr } = await hostedPlacement(args, env());
    assert.deepEqual([code, stdout.split('\n')[1]], [0, '    PGPU: total 4 -> 1']);
    assert.match(stderr, /^Warning: more is used than there is now: PGPU \(used 2, capacity 1\) of less\. /);
  }
  await run('allocation', 'delete', '--project', 'ci');
  await run('provider', 'delete', 'less');
});

test('--prune deletes only what files of the pool have made and nothing is allocated on', async () => {
  const others = await file('pool: others\nproviders: [{name: of-others}]');
  await run('apply', '-f', others);
  await run('provider', 'create', 'by-hand');
  await run('provider', 'create', 'child-by-hand', '--parent', 'gpu-1');
  await run('allocation', 'set', 'job-1', '-a', 'rp=gpu-1-card-0,PGPU=1', '--project', 'ci');
  const at = await file('pool: gpus\nproviders: [{name: gpu-3}]', 'gpus.yaml');
  await run('apply', '-f', at);
  const gone = await file('pool: gpus\nproviders: []', 'gone.yaml');
  assert.equal(await run('apply', '-f', gone), 'Nothing to change: 0 providers are as the file says.\n');
  const args = ['apply', '-f', gone, '--prune'];
  assert.match(await run(...args, '--dry-run'), /^- gpu-3\n! .*\n! .*\n! .*\n0 to make, 0 to change, 1 to delete/);
  const { code, stdout, stderr } = await hostedPlacement(args, env());
  assert.deepEqual([code, stdout.split('\n').at(-2)], [exitCodes.conflict.code, 'Done: 0 made, 0 changed, 1 deleted.']);
  assert.match(stderr, /3 providers are gone from the file and not deleted/);
  assert.match(stderr, /^gpu-1: has the child child-by-hand, which stays$/m);
  assert.match(stderr, /^gpu-2: has the child gpu-1-card-0, which stays$/m);
  assert.match(stderr, /^gpu-1-card-0: in use: PGPU=1$/m);
  await run('allocation', 'delete', 'ci/job-1');
  await run('provider', 'delete', 'child-by-hand');
  await run(...args);
  assert.deepEqual((await wholeFleet(server)).map(({ name }) => name).toSorted(), ['by-hand', 'of-others']);
  const nameless = await file('providers: []');
  await fails('wrongInput', /--prune needs the key pool/, ['apply', '-f', nameless, '--prune']);
  // A command that was stopped between the two requests that make a provider has left one without a mark.
  const { uuid } = await clientOf(server).providers.create({ name: 'half-made', uuid: providerUuid('half-made') });
  await run('apply', '-f', await file('pool: gpus\nproviders: [{name: half-made}, {name: by-hand}]'));
  assert.deepEqual((await provider('half-made')).traits, ['CUSTOM_POOL_OF_FILE_GPUS'], uuid);
  assert.deepEqual((await provider('by-hand')).traits, []);
  await run(...args);
  assert.deepEqual((await wholeFleet(server)).map(({ name }) => name).toSorted(), ['by-hand', 'of-others']);
});

test('a wrong file is refused as a whole', async () => {
  writesTo(server);
  const at = await file(
    'providers:\n  - name: new\n    traits: [HW_NONE]\n  - name: by-hand\n    inventories: { VCPU: 2.5 }\n',
  );
  await fails('wrongInput', /pool\.yaml:5: providers\[1\]\.inventories\.VCPU: 2\.5 is no whole number/, [
    'apply',
    '-f',
    at,
  ]);
  const empty = await file('# nothing yet\n');
  await fails('wrongInput', /pool\.yaml(:1)?: the file: is empty; it has the keys .*providers/, ['apply', '-f', empty]);
  const unknown = await file('providers: [{name: new, traits: [HW_CPU_X86_VMZ]}]');
  await fails(
    'wrongInput',
    /pool\.yaml:1: providers\[0\]\.traits\[0\]: there is no trait HW_CPU_X86_VMZ; is it HW_CPU_X86_VM/,
    ['apply', '-f', unknown],
  );
  await fails('wrongInput', /The file .*none\.yaml cannot be read: ENOENT/, [
    'apply',
    '-f',
    path.join(folder, 'none.yaml'),
  ]);
  await fails('wrongInput', /There is no provider "none"/, ['export', 'none']);
  assert.deepEqual(writesTo(server), []);
});

test('what only the service refuses is reported with its line and place in the file', async () => {
  const at = await file(
    `providers:
  - name: told-1
  - name: told-2
    inventories:
      CUSTOM_TOLD: 2
    traits:
      - HW_CPU_X86_VMX
      - HW_CPU_X86_VMX
      - CUSTOM_TOLD
`,
  );
  for (const [path, expected] of [
    [
      '/resource_classes/',
      /^placement: \S+pool\.yaml:5: providers\[1\]\.inventories\.CUSTOM_TOLD: CUSTOM_TOLD: Policy/,
    ],
    ['/traits/', /^placement: \S+pool\.yaml:9: providers\[1\]\.traits\[2\]: CUSTOM_TOLD: Policy/],
    ['/inventories', /^placement: \S+pool\.yaml:3: providers\[1\]: told-2: Policy/],
  ] as const) {
    const front = await startFront((incoming, response) => {
      if (incoming.method === 'PUT' && incoming.url?.includes(path)) incoming.headers['x-auth-token'] = 'joe';
      forward(server.url, incoming, response);
    });
    const { code, stderr } = await hostedPlacement(['apply', '-f', at], { OS_ENDPOINT: front.url, OS_TOKEN: 'admin' });
    await front.close();
    assert.equal(code, exitCodes.forbidden.code, stderr);
    assert.match(stderr, expected);
  }
  await run('apply', '-f', at);
  assert.deepEqual((await provider('told-2')).traits.toSorted(), ['CUSTOM_TOLD', 'HW_CPU_X86_VMX']);
});

test('a drained host stays drained, and gets the inventories of the file when the drain is lifted', async () => {
  await run(
    'apply',
    '-f',
    await file('providers: [{name: idle, inventories: {VCPU: {total: 8, reserved: 1}, PGPU: 4}}]'),
  );
  await run('drain', 'idle');
  const at = await file(
    'providers: [{name: idle, traits: [HW_CPU_X86_VMX], inventories: {VCPU: {total: 16, reserved: 2}}}]',
  );
  assert.match(await run('apply', '-f', at), /VCPU: total 8 -> 16, reserved 1 -> 2\n {4}- inventory PGPU\n/);
  assert.equal((await provider('idle')).inventories.VCPU?.reserved, 16);
  assert.equal(await run('apply', '-f', at), 'Nothing to change: 1 provider is as the file says.\n');
  await run('undrain', 'idle');
  const idle = await provider('idle');
  assert.deepEqual([idle.inventories.VCPU?.reserved, idle.traits], [2, ['HW_CPU_X86_VMX']]);
});

test('a new provider below a drained host is drained with the host, and undrained with it', async () => {
  await run('apply', '-f', await file('providers: [{name: whole, inventories: {PGPU: 8}}]'));
  await run('drain', 'whole');
  const cards = [0, 1].map((number) => `{name: whole-${number}, inventories: {PGPU: {total: 4, reserved: ${number}}}}`);
  const at = await file(`providers: [{name: whole, inventories: {}, children: [${cards.join(', ')}]}]`);
  assert.match(
    await run('apply', '-f', at),
    /\+ whole-1 \(new, below whole\)\n {4}\+ inventory PGPU: total 4, reserved 1\n/,
  );
  assert.match(await run('candidate', 'count', 'PGPU=1', '--in-tree', 'whole'), /^0 fit/);
  assert.equal(await run('apply', '-f', at), 'Nothing to change: 3 providers are as the file says.\n');
  assert.match(await run('undrain', 'whole'), /: 3 providers in/);
  assert.match(await run('candidate', 'count', 'PGPU=1', '--in-tree', 'whole'), /^7 fit/);
});

test('a provider that another program changes meanwhile is read again; only values of the file are overwritten', async () => {
  const client = clientOf(server);
  await run('apply', '-f', await file('providers: [{name: shared, inventories: {VCPU: 8}}, {name: second}]'));
  const { uuid } = await provider('shared');
  const traitsOfOthers = ['HW_CPU_X86_VMX', 'HW_CPU_X86_AVX'];
  let isThirdMade = false;
  const front = await startFront(async (incoming, response) => {
    const trait = incoming.method === 'PUT' && incoming.url?.endsWith(`${uuid}/inventories`) && traitsOfOthers.pop();
    if (trait) {
      const { traits, resource_provider_generation } = await client.providerTraits.show(uuid);
      await client.providerTraits.set(uuid, { traits: [...traits, trait], resource_provider_generation });
    }
    // While a provider of the file is made, another program makes one of the same name.
    if (incoming.method === 'POST' && !isThirdMade) {
      isThirdMade = true;
      const made = await client.providers.create({ name: 'third' });
      await client.inventories.set(made.uuid, { inventories: { PGPU: { total: 1 } }, resource_provider_generation: 0 });
    }
    forward(server.url, incoming, response);
  });
  const at = await file(`providers:
  - name: shared
    inventories: { VCPU: 16 }
  - name: second
    children: [{ name: third, inventories: { PGPU: 2 }, children: [{ name: fourth }] }]
`);
  const { code, stdout, stderr } = await hostedPlacement(['apply', '-f', at], {
    OS_ENDPOINT: front.url,
    OS_TOKEN: 'admin',
  });
  await front.close();
  assert.deepEqual([code, stdout.split('\n').at(-2)], [0, 'Done: 1 made, 2 changed, 0 deleted.'], stderr);
  assert.match(
    stderr,
    /Another program has changed shared\. The difference is now:\n~ shared\n {4}VCPU: total 8 -> 16/,
  );
  assert.match(
    stderr,
    /Another program has changed third\. The difference is now:\n~ third\n {4}parent: none -> second\n {4}PGPU: total 1 -> 2/,
  );
  const shared = await provider('shared');
  assert.deepEqual(shared.traits.toSorted(), ['HW_CPU_X86_AVX', 'HW_CPU_X86_VMX']);
  assert.equal(shared.inventories.VCPU?.total, 16);
  assert.equal((await provider('fourth')).parent_provider_uuid, (await provider('third')).uuid);
  assert.equal(await run('apply', '-f', at), 'Nothing to change: 4 providers are as the file says.\n');
});

test('a command that was stopped at any write can be run again, and the providers that it created can be pruned', async () => {
  const before = (await wholeFleet(server)).map(({ name }) => name).toSorted();
  const gone = await file('pool: halves\nproviders: []', 'gone.yaml');
  let points = 0;
  for (let writes = 0, isStopped = true; isStopped; writes++) {
    const at = await file(`pool: halves
providers:
  - name: half-${writes}
    inventories: { VCPU: 8 }
    traits: [HW_CPU_X86_VMX]
    children: [{ name: half-${writes}-child, aggregates: [rack-7], inventories: { PGPU: 1 } }]
`);
    let left = writes;
    const front = await startFront((incoming, response) => {
      if (incoming.method !== 'GET' && left-- <= 0) response.destroy();
      else forward(server.url, incoming, response);
    });
    const { code } = await hostedPlacement(['apply', '-f', at], { OS_ENDPOINT: front.url, OS_TOKEN: 'admin' });
    await front.close();
    isStopped = code !== 0;
    if (isStopped) {
      points++;
      assert.match(await run('apply', '-f', at), /Done: /);
    }
    assert.equal(await run('apply', '-f', at), 'Nothing to change: 2 providers are as the file says.\n');
    await run('apply', '-f', gone, '--prune');
    const names = (await wholeFleet(server)).map(({ name }) => name).toSorted();
    assert.deepEqual(names, before, `after ${writes} writes`);
  }
  assert.ok(points >= 7, `${points} points`);
});

/** Makes a fleet by the client, with all that it has but usages. */
async function fill(of: TestServer, fleet: readonly WholeProvider[]): Promise<void> {
  const { providers, resourceClasses, traits, providerTraits, aggregates, inventories } = clientOf(of);
  for (const { uuid, name, parent_provider_uuid, ...parts } of fleet) {
    await providers.create({ uuid, name, parent_provider_uuid });
    for (const one of Object.keys(parts.inventories)) if (one.startsWith('CUSTOM_')) await resourceClasses.ensure(one);
    for (const one of parts.traits) if (one.startsWith('CUSTOM_')) await traits.ensure(one);
    const guard = async () => ({ resource_provider_generation: (await providers.show(uuid)).generation });
    await providerTraits.set(uuid, { traits: parts.traits, ...(await guard()) });
    await aggregates.set(uuid, { aggregates: parts.aggregates, ...(await guard()) });
    await inventories.set(uuid, { inventories: parts.inventories, ...(await guard()) });
  }
}

/** What a file says of a fleet. */
const saidOf = (fleet: readonly WholeProvider[]) =>
  new Map(
    fleet
      .map(withoutDrain)
      .toSorted((one, other) => (one.uuid < other.uuid ? -1 : 1))
      .map(({ uuid, name, parent_provider_uuid, inventories, traits, aggregates }) => [
        uuid,
        {
          name,
          parent_provider_uuid,
          inventories,
          traits: traits.filter((trait) => !isPoolMark(trait)).toSorted(),
          aggregates: aggregates.toSorted(),
        },
      ]),
  );

test('export and apply on an empty service give the same fleet, in YAML and JSON', async () => {
  for (const [seed, format] of [
    [1, 'yaml'],
    [2, 'json'],
    [3, 'yaml'],
  ] as const) {
    const [fleet = []] = fc.sample(randomFleet, {
      numRuns: 1,
      seed: seed + Number(process.env.APPLY_SEED ?? Date.now()),
    });
    const [from, to] = [await startServer(), await startServer()];
    try {
      await fill(from, fleet);
      const [first, second] = [commandsOn(() => from), commandsOn(() => to)];
      const at = await file(await first.run('export', ...(format === 'json' ? ['--json'] : [])), `fleet.${format}`);
      assert.match(await first.run('apply', '-f', at), /^Nothing to change/);
      await second.run('apply', '-f', at);
      assert.deepEqual(saidOf(await wholeFleet(to)), saidOf(await wholeFleet(from)));
      assert.match(await second.run('apply', '-f', await file(await second.run('export'))), /^Nothing to change/);
    } finally {
      await Promise.all([from.close(), to.close()]);
    }
  }
});

test('apply writes the whole file although nobody reads what it prints, as behind head', async () => {
  const providers = Array.from({ length: 30 }, (_, index) => `  - name: unread-${index}`);
  const child = startPlacement(['apply', '-f', await file(['providers:', ...providers, ''].join('\n'))], env());
  child.stdout.destroy();
  assert.deepEqual(await once(child, 'exit'), [0, null]);
  const made = (await wholeFleet(server)).filter(({ name }) => name.startsWith('unread-'));
  assert.equal(made.length, providers.length);
});
