/** `placement drain`, `undrain` and `release` on a real service. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { drainTree, undrainTree } from '../../src/cli/drain_tree.ts';
import { exitCodes } from '../../src/cli/exit_codes.ts';
import { connect, consumerUuid, type WholeProvider } from '../../src/client/index.ts';
import { until } from '../support/until.ts';
import { cells, commandsOn, hostedPlacement, placement } from './command.ts';
import { forward, startFront, startServer, type TestServer } from './servers.ts';

let server: TestServer;
before(async () => {
  server = await startServer();
});
after(() => server.close());

const { env, run, fails, isWrongUsage } = commandsOn(() => server);
const client = () => connect({ endpoint: server.url, auth: 'admin', version: '2.9' });

let number = 0;
/** The host of a test and its part, and another host. */
let [host, cell, other] = ['', '', ''];

beforeEach(async () => {
  number++;
  [host, cell, other] = [`host-${number}`, `cell-${number}`, `other-${number}`];
  await make(host, { MEMORY_MB: { total: 1024, reserved: 128 }, DISK_GB: { total: 100 } });
  await make(cell, { VCPU: { total: 8, allocation_ratio: 2 }, MEMORY_MB: { total: 512, reserved: 512 } }, host);
  await make(other, { VCPU: { total: 8 } });
});

type Parts = Parameters<ReturnType<typeof client>['inventories']['set']>[1]['inventories'];

async function make(name: string, inventories: Parts, parent?: string): Promise<void> {
  const { providers, inventories: stock } = client();
  const [above] = parent === undefined ? [] : await providers.list({ name: parent });
  const { uuid } = await providers.create({ name, parent_provider_uuid: above?.uuid ?? null });
  await stock.set(uuid, { inventories, resource_provider_generation: 0 });
}

async function provider(name: string): Promise<WholeProvider> {
  const [found] = await client().providers.list({ name });
  const [whole] = await client().providerSummaries.page({ uuids: [found?.uuid ?? ''] });
  assert.ok(whole, name);
  return whole;
}

/** What can change in a host and its part. */
const stateOf = async () =>
  Promise.all(
    [host, cell].map(async (name) => {
      const { inventories, traits, usages } = await provider(name);
      return { inventories, traits: traits.toSorted(), usages };
    }),
  );

const isClosed = ({ inventories }: Pick<WholeProvider, 'inventories'>): boolean =>
  Object.values(inventories).every(({ reserved, total }) => reserved === total);

const allocate = (consumer: string, ...parts: readonly string[]) =>
  run('allocation', 'set', consumer, '--project', 'ci', ...parts.flatMap((part) => ['-a', `rp=${part}`]));

const customTraits = async () => client().traits.list({ name: 'startswith:CUSTOM_DRAINED' });

test('a drained tree takes no new claims and keeps its allocations, and undrain restores its inventories', async () => {
  await allocate('job', `${cell},VCPU=2`, `${host},DISK_GB=10`);
  const open = await stateOf();
  // A service that is too old is found out before anything is written.
  const old = await hostedPlacement(['drain', cell, '--os-placement-api-version', '2.8'], env());
  assert.equal(old.code, exitCodes.failed.code, old.stderr);
  assert.deepEqual(await stateOf(), open);
  const text = await run('drain', cell);
  assert.match(text, new RegExp(`^Drained: 2 providers in the tree of ${cell}\\. No new claim fits there\\.\n`));
  assert.match(text, /\n1 consumer holds something in the tree of cell-\d+\.\n$/);
  const rows = cells(text.slice(text.indexOf('+'), text.lastIndexOf('+') + 1));
  assert.deepEqual(
    rows.map((row) => row.slice(1)).toSorted(),
    [
      ['job', 'ci', 'INSTANCE', cell, 'VCPU=2'],
      ['job', 'ci', 'INSTANCE', host, 'DISK_GB=10'],
    ].toSorted(),
  );
  const [above, below] = await stateOf();
  assert.ok(above && below && isClosed(above) && isClosed(below));
  assert.deepEqual(above.traits, ['CUSTOM_DRAINED', 'CUSTOM_DRAINED_DISK_GB_0', 'CUSTOM_DRAINED_MEMORY_MB_128']);
  assert.deepEqual(below.traits, ['CUSTOM_DRAINED', 'CUSTOM_DRAINED_MEMORY_MB_512', 'CUSTOM_DRAINED_VCPU_0']);
  await fails('full', /exceed the capacity|Unable to allocate/, [
    'allocation',
    'set',
    'job-2',
    '--project',
    'ci',
    '-a',
    `rp=${cell},VCPU=1`,
  ]);
  // What runs may be written again, and with less.
  await allocate('job', `${cell},VCPU=1`, `${host},DISK_GB=10`);

  const again = await run('drain', host);
  assert.match(again, /^Drained: 2 providers .* Before already: 2 providers\.\n/);
  assert.match(await run('undrain', host), /^The drain is lifted: 2 providers in the tree of host-\d+\.\n$/);
  const [first, second] = await stateOf();
  assert.deepEqual([first, { ...second, usages: open[1]?.usages }], open);
  assert.deepEqual(await customTraits(), ['CUSTOM_DRAINED'], 'queries may name it');
  assert.match(await run('undrain', host), /^No provider in the tree of host-\d+ was drained\.\n$/);
  await allocate('job-2', `${cell},VCPU=1`);
});

test('a drained host is named as drained, with the command that lifts it', async () => {
  await allocate('job', `${cell},VCPU=3`);
  await run('drain', host);
  const lifted = (name: string) =>
    `What is drained takes no new claims. "placement undrain ${name}" lifts that, for the whole tree of ${name}.`;
  const why = await run('candidate', 'why', 'VCPU=1', '--host', host);
  assert.deepEqual(
    cells(
      why
        .slice(why.indexOf('The nearest trees:'))
        .split('\n')
        .filter((line) => /^[+|]/.test(line))
        .join('\n'),
    ),
    [[host, 'resources=VCPU:1', `${cell} is drained`]],
  );
  assert.ok(why.endsWith(`\n${lifted(cell)}\n`), why);
  const refused = await hostedPlacement(
    ['allocation', 'place', 'DISK_GB=1', '--project', 'ci', '--in-tree', host],
    env(),
  );
  assert.deepEqual([refused.code, refused.stderr.includes(`${host} is drained`)], [exitCodes.full.code, true]);

  const tree = await run('provider', 'tree', cell);
  assert.match(
    tree,
    new RegExp(`${host} +\\| [0-9a-f-]{36} \\| drained \\|\n.* ${cell} +\\| [0-9a-f-]{36} \\| drained \\|\n`),
  );
  assert.ok(tree.endsWith(`\n${lifted(host)}\n`), tree);
  const [root] = JSON.parse(await run('provider', 'tree', cell, '--json'));
  assert.deepEqual([root.drained, root.children[0].drained], [true, true]);
  assert.doesNotMatch(await run('provider', 'tree', other, '--usage'), /drained/);

  await run('undrain', host);
  assert.doesNotMatch(await run('provider', 'tree', cell), /drained/);
  // What has no room for another reason is not called drained.
  await hostedPlacement(['inventory', 'set', cell, 'VCPU:allocation_ratio=1', 'VCPU:reserved=7'], env());
  assert.match(
    await run('candidate', 'why', 'VCPU=1', '--host', host),
    new RegExp(`${cell} has none left: 2 more are in use than it may give`),
  );
});

test('a provider that is open since its drain is not called drained, and one that comes below a drained one is warned of', async () => {
  await run('drain', host);
  await hostedPlacement(['inventory', 'set', cell, 'VCPU:reserved=0'], env());
  const tree = await run('provider', 'tree', cell);
  assert.match(
    tree,
    new RegExp(`${host} +\\| [0-9a-f-]{36} \\| drained \\|\n.* ${cell} +\\| [0-9a-f-]{36} \\| +\\|\n`),
  );
  assert.match(tree, new RegExp(`^${cell} is drained, and accepts claims again\\. .*placement drain ${cell}\\.$`, 'm'));
  const [root] = JSON.parse(await run('provider', 'tree', cell, '--json'));
  assert.deepEqual([root.drained, root.children[0].drained], [true, false]);

  const warning = (name: string) =>
    new RegExp(`^Warning: ${name} is below a drained provider, .*: placement drain ${name}\n$`);
  const created = await hostedPlacement(['provider', 'create', `new-${host}`, '--parent', host], env());
  assert.match(created.stderr, warning(`new-${host}`));
  const moved = await hostedPlacement(['provider', 'set', other, '--parent', cell], env());
  assert.match(moved.stderr, warning(other));
  const deeper = await hostedPlacement(['provider', 'create', `below-${other}`, '--parent', other], env());
  assert.equal(deeper.stderr, '');
  await run('drain', host);
  assert.doesNotMatch(await run('provider', 'tree', host), /accepts claims again/);
  await run('undrain', host);
});

test('an undrain says what stays reserved where an agent has removed the marks of the drain', async () => {
  await run('drain', host);
  const { uuid, generation } = await provider(cell);
  await client().providerTraits.set(uuid, { traits: [], resource_provider_generation: generation });
  const done = await hostedPlacement(['undrain', host], env());
  assert.match(done.stdout, /^The drain is lifted: 1 provider /);
  const opening = `placement inventory set ${cell} VCPU:reserved=0 MEMORY_MB:reserved=0`;
  assert.equal(
    done.stderr,
    `Warning: All of VCPU, MEMORY_MB on ${cell} is reserved, and no mark of a drain is there: undrain leaves it. ` +
      `If an agent has removed the marks, open it by: ${opening}\n`,
  );
  await hostedPlacement(opening.split(' ').slice(1), env());
  const again = await hostedPlacement(['undrain', host], env());
  assert.deepEqual([again.code, again.stderr], [0, '']);
});

test('an undrain leaves a provider that was closed by hand, and does not say that its marks were removed', async () => {
  await run('inventory', 'set', cell, 'VCPU:reserved=8');
  const closed = await provider(cell);
  const { code, stdout, stderr } = await hostedPlacement(['undrain', host], env());
  assert.deepEqual([code, stdout], [0, `No provider in the tree of ${host} was drained.\n`]);
  assert.match(
    stderr,
    /^Warning: All of VCPU, MEMORY_MB on cell-\d+ is reserved, .*: undrain leaves it\. If an agent has removed the marks, /,
  );
  assert.deepEqual(await provider(cell), closed);
});

test('any undrain deletes the traits that a drain has created but not assigned before it was stopped', async () => {
  assert.ok(await interrupted(3, 'drain', host), 'it is stopped when it has made traits');
  assert.notDeepEqual(await customTraits(), ['CUSTOM_DRAINED']);
  assert.match(await run('undrain', other), /^No provider in the tree of other-\d+ was drained\.\n$/);
  assert.deepEqual(await customTraits(), ['CUSTOM_DRAINED']);
});

test('a drain stores the first reserved amounts, whatever other programs write later', async () => {
  await run('drain', host);
  const { uuid, generation } = await provider(cell);
  // An agent writes what it finds: another total, nothing reserved, and a class that it did not have.
  await client().inventories.set(uuid, {
    inventories: { VCPU: { total: 16 }, MEMORY_MB: { total: 256 }, PGPU: { total: 4, reserved: 1 } },
    resource_provider_generation: generation,
  });
  assert.match(await run('drain', host), /Before already: 1 provider/);
  assert.ok(isClosed(await provider(cell)));
  const { code, stdout, stderr } = await hostedPlacement(['undrain', cell], env());
  assert.deepEqual([code, /^The drain is lifted: 2 providers/.test(stdout)], [0, true]);
  assert.match(
    stderr,
    /^Warning: 512 of MEMORY_MB were reserved on cell-\d+, and there are only 256 now: all of them are reserved\.\n$/,
  );
  const { inventories } = await provider(cell);
  assert.deepEqual(
    Object.entries(inventories).map(([name, { total, reserved }]) => [name, total, reserved]),
    [
      ['VCPU', 16, 0],
      ['MEMORY_MB', 256, 256],
      ['PGPU', 4, 1],
    ],
  );
});

test('an inventory that opens a drained host is written, and a warning says so', async () => {
  await run('drain', other);
  const setTo = async (...changes: readonly string[]) => {
    const { code, stderr } = await hostedPlacement(['inventory', 'set', other, ...changes], env());
    assert.equal(code, 0);
    return stderr;
  };
  assert.equal(await setTo('VCPU=16', 'VCPU:reserved=16'), '');
  const warning = `Warning: ${other} is drained, and accepts claims again. Drain it once more: placement drain ${other}\n`;
  assert.equal(await setTo('VCPU=32'), warning);
  await run('undrain', other);
  assert.equal(await setTo('VCPU=8'), '');
});

test('what stays reserved because its class got another name during the drain is told', async () => {
  const [old, present] = [`CUSTOM_OLD_${number}`, `CUSTOM_NEW_${number}`];
  await client().resourceClasses.create(old);
  await make(`renamed-${number}`, { [old]: { total: 4, reserved: 1 }, VCPU: { total: 8 } });
  await run('drain', `renamed-${number}`);
  const answer = await fetch(`${server.url}/resource_classes/${old}`, {
    method: 'PUT',
    headers: { 'x-auth-token': 'admin', 'content-type': 'application/json', 'openstack-api-version': 'placement 1.6' },
    body: JSON.stringify({ name: present }),
  });
  assert.equal(answer.status, 200);
  const { code, stderr } = await hostedPlacement(['undrain', `renamed-${number}`], env());
  assert.equal(code, 0);
  assert.match(stderr, new RegExp(`has no ${old} now, of which 1 were reserved, and all of ${present} stays reserved`));
  await run('inventory', 'set', `renamed-${number}`, `${present}:reserved=1`);
});

/** Runs a command line whose connection is lost at a write, so that the command fails there. @param before the writes that are done */
async function interrupted(writesBefore: number, ...args: readonly string[]): Promise<boolean> {
  let left = writesBefore;
  const front = await startFront((incoming, response) => {
    if (incoming.method !== 'GET' && left-- <= 0) response.destroy();
    else forward(server.url, incoming, response);
  });
  const { code } = await hostedPlacement(args, { OS_ENDPOINT: front.url, OS_TOKEN: 'admin' });
  await front.close();
  return code !== 0;
}

test('a drain and an undrain may be stopped at any point: each can be repeated, and no reserved amount is lost', async () => {
  const open = await stateOf();
  let points = 0;
  for (let writes = 0; await interrupted(writes, 'drain', host); writes++) {
    points++;
    if (writes % 2 === 0) {
      await run('drain', host);
      assert.ok((await stateOf()).every(isClosed));
    }
    await run('undrain', host);
    assert.deepEqual(await stateOf(), open, `after ${writes} writes of drain`);
  }
  for (let writes = 0; await interrupted(writes, 'undrain', host); writes++) {
    points++;
    await run('drain', host);
    assert.ok((await stateOf()).every(isClosed), `after ${writes} writes of undrain`);
  }
  assert.deepEqual(await stateOf(), open);
  assert.ok(points >= 10, `${points} points`);
});

test('drains and their ends at the same time leave nothing that cannot be undone', async () => {
  const open = await stateOf();
  const { uuid } = await provider(host);
  for (let round = 0; round < 12; round++) {
    const calls = [drainTree, undrainTree, drainTree, undrainTree].slice(round % 3);
    await Promise.all(calls.map((call) => call(client(), uuid)));
    if (round % 2 === 0) {
      await drainTree(client(), uuid);
      assert.ok((await stateOf()).every(isClosed));
    }
    await undrainTree(client(), uuid);
    assert.deepEqual(await stateOf(), open, `after round ${round}`);
  }
});

test('a drain is guarded by generations: it stores the amounts that another program writes meanwhile', async () => {
  const { uuid } = await provider(cell);
  let isDone = false;
  const front = await startFront(async (incoming, response) => {
    if (incoming.method === 'PUT' && incoming.url?.endsWith(`${uuid}/traits`) && !isDone) {
      isDone = true;
      const { inventories, resource_provider_generation } = await client().inventories.list(uuid);
      const changed = { ...inventories, VCPU: { total: 8, reserved: 3 } };
      await client().inventories.set(uuid, { inventories: changed, resource_provider_generation });
    }
    forward(server.url, incoming, response);
  });
  const { code } = await hostedPlacement(['drain', host], { OS_ENDPOINT: front.url, OS_TOKEN: 'admin' });
  await front.close();
  assert.equal(code, 0);
  assert.ok((await stateOf()).every(isClosed));
  await run('undrain', host);
  assert.equal((await provider(cell)).inventories.VCPU?.reserved, 3);
});

test('--until-empty waits until the tree has no allocations, or until the timeout', async () => {
  await isWrongUsage(/--wait needs --until-empty/, ['drain', host, '--wait', '1s']);
  await allocate('job', `${cell},VCPU=2`);
  const over = await hostedPlacement(['drain', host, '--until-empty', '--wait', '1'], env());
  assert.equal(over.code, exitCodes.notYet.code, over.stderr);
  assert.match(
    over.stderr,
    /^placement: 1 consumer holds something in the tree of host-\d+ still: [0-9a-f-]{36} \(job\)\.\n$/,
  );
  const isFollowing = () =>
    server.seen.some(({ url, headers }) => url.startsWith('/changes?since=') && headers.prefer !== undefined);
  server.seen.splice(0);
  const waiting = placement(['drain', host, '--until-empty', '--wait', '5m'], env());
  await until('it waits for changes', isFollowing);
  server.seen.splice(0);
  // Another program opens the host again while the command waits.
  assert.equal((await hostedPlacement(['inventory', 'set', cell, 'VCPU:reserved=0'], env())).code, 0);
  await until('it waits for further changes', isFollowing);
  await run('allocation', 'delete', 'ci/job');
  const ended = await waiting;
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(
    ended.stderr,
    /Warning: cell-\d+ accepts claims again, since another program has written its inventories/,
  );
  assert.match(ended.stderr, /No consumer holds anything in the tree of host-\d+ any more\.\n$/);
});

const outcomes = (text: string) =>
  cells(text.slice(0, text.lastIndexOf('+') + 1))
    .map((row) => [row[1], row[4], row[5], row[6]])
    .toSorted();

test('release deletes the allocations of consumers on a dead host, and skips consumers that also have allocations elsewhere', async () => {
  await allocate('here', `${cell},VCPU=2`, `${host},DISK_GB=10`);
  await allocate('both', `${cell},VCPU=1`, `${other},VCPU=3`);
  await allocate('there', `${other},VCPU=1`);
  const shown = await run('release', '--in-tree', cell, '--dry-run');
  assert.deepEqual(outcomes(shown), [
    ['both', 'VCPU=1', 'VCPU=3', 'holds more elsewhere'],
    ['here', 'VCPU=2 DISK_GB=10', '', 'to be released'],
  ]);
  assert.match(shown, /\n1 consumer would be released\. Nothing was deleted\.\n$/);
  const done = await hostedPlacement(['release', '--in-tree', host], env());
  assert.equal(done.code, exitCodes.conflict.code);
  assert.deepEqual(
    outcomes(done.stdout).map(([name, , , outcome]) => [name, outcome]),
    [
      ['both', 'holds more elsewhere'],
      ['here', 'released'],
    ],
  );
  assert.match(
    done.stderr,
    /still held in the tree of host-\d+: 1 consumer not released: --all releases them everywhere/,
  );
  assert.deepEqual((await provider(other)).usages, { VCPU: 4 });
  const all = JSON.parse(await run('release', '--in-tree', host, '--all', '--json'));
  assert.deepEqual(
    all.consumers.map(({ name, outcome }: Record<string, string>) => [name, outcome]),
    [['both', 'released']],
  );
  assert.deepEqual((await provider(other)).usages, { VCPU: 1 });
  assert.match(await run('release', '--in-tree', host), /^No consumer holds anything in the tree of host-\d+\.\n$/);
});

test('release does not take what a consumer has of a provider that shares, such as a licence, for another host', async () => {
  await make('licences', { VGPU: { total: 2 } });
  await run('trait', 'add', 'licences', 'MISC_SHARES_VIA_AGGREGATE');
  await allocate('licensed', `${cell},VCPU=1`, 'licences,VGPU=1');
  await allocate('both', `${cell},VCPU=1`, `${other},VCPU=1`, 'licences,VGPU=1');
  assert.deepEqual(outcomes(await run('release', '--in-tree', host, '--dry-run')), [
    ['both', 'VCPU=1', 'VCPU=1 VGPU=1', 'holds more elsewhere'],
    ['licensed', 'VCPU=1', 'VGPU=1', 'to be released'],
  ]);
  await run('allocation', 'delete', 'ci/both');
  await run('release', '--in-tree', host);
  assert.deepEqual((await provider('licences')).usages, { VGPU: 0 });
});

/** Changes the allocations of a consumer, by the client: the command runs at the same time. */
async function rewrite(name: string, to: string, amount: number): Promise<void> {
  const { allocations } = client();
  const consumer = consumerUuid('ci', name);
  const {
    project_id = '',
    user_id = '',
    consumer_generation = null,
    consumer_type = '',
  } = await allocations.show(consumer);
  const owner = { project_id, user_id, consumer_generation, consumer_type };
  const { uuid } = await provider(to);
  await allocations.set(consumer, { allocations: { [uuid]: { resources: { VCPU: amount } } }, ...owner });
}

test('a consumer that moves to another host during a release keeps its new allocations', async () => {
  await allocate('mover', `${cell},VCPU=2`);
  await allocate('grows', `${cell},VCPU=1`);
  let moved: Promise<void> | undefined;
  const front = await startFront(async (incoming, response) => {
    // Both deletions wait until both consumers are written again.
    if (incoming.method === 'DELETE') {
      moved ??= rewrite('mover', other, 5).then(() => rewrite('grows', cell, 3));
      await moved;
    }
    forward(server.url, incoming, response);
  });
  const { code, stdout, stderr } = await hostedPlacement(['release', '--in-tree', host], {
    OS_ENDPOINT: front.url,
    OS_TOKEN: 'admin',
  });
  await front.close();
  assert.equal(code, 0, stderr);
  assert.deepEqual(outcomes(stdout), [
    ['grows', 'VCPU=3', '', 'released'],
    ['mover', '', 'VCPU=5', 'moved away'],
  ]);
  assert.deepEqual((await provider(other)).usages, { VCPU: 5 });
});

test('a release that is refused has the exit code of the refusal, also as a dry run', async () => {
  await allocate('kept', `${cell},VCPU=2`);
  for (const [method, ...more] of [['DELETE'], ['GET', '--dry-run']]) {
    const front = await startFront((incoming, response) => {
      if (incoming.method !== method || !incoming.url?.startsWith('/allocations/')) {
        return forward(server.url, incoming, response);
      }
      response.writeHead(403).end();
    });
    const ended = await hostedPlacement(['release', '--in-tree', host, ...more], env({ OS_ENDPOINT: front.url }));
    await front.close();
    assert.equal(ended.code, exitCodes.forbidden.code, ended.stderr);
    assert.match(ended.stderr, /^placement: 1 consumer not released: Forbidden /);
  }
});
