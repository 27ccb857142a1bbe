import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect } from '../../src/client/index.ts';
import { numberedUuid } from '../support/uuids.ts';
import { cells, commandsOn } from './command.ts';
import { startServer, type TestServer } from './servers.ts';

let server: TestServer;
before(async () => {
  server = await startServer();
});
after(() => server.close());

const commands = commandsOn(() => server);

/** Runs a command line that must succeed. @returns the cells of the rows of its table */
const run = async (...args: readonly string[]) => cells(await commands.run(...args));

const consumer = 'b1d0c1a4-52a1-4a5e-8f0c-000000000001';

test('consumers are listed, shown and moved, and whole providers are printed', async () => {
  await run('provider', 'create', 'host-1', '--uuid', '6f0c9f9e-6c9c-4c39-9d8a-000000000001');
  await run('inventory', 'set', 'host-1', 'VCPU=8', 'MEMORY_MB=1024');
  await run('allocation', 'set', consumer, '-a', 'rp=host-1,VCPU=2', '--project', 'web', '--user', 'ada');
  const row = [consumer, '', 'web', 'ada', 'INSTANCE', 'host-1', 'VCPU=2'];
  const list = (...args: readonly string[]) => run('consumer', 'list', ...args);
  const all = await list();
  assert.deepEqual(
    all.map((one) => one.slice(0, 7)),
    [row],
  );
  assert.match(`${all[0]?.[7]}`, /^\d{4}-\S+Z$/, 'since when');
  assert.equal(all[0]?.[8], '', 'until when');
  const filter = ['--project', 'web', '--user', 'ada', '--type', 'INSTANCE', '--provider', 'host-1'];
  assert.deepEqual(await list(...filter), all);
  assert.match(await commands.run('consumer', 'list', '-c', 'generation', '--format', 'csv'), /^generation\n1\n$/);
  const older = (await list('--os-placement-api-version', '2.8'))[0] ?? [];
  assert.deepEqual([older[0], older[5], older[6]], [consumer, '', ''], 'before 2.9 it is not known where they are');
  const [listed = []] = await run('allocation', 'list', 'host-1');
  assert.deepEqual(listed.slice(0, 6), [consumer, '', 'web', 'ada', 'INSTANCE', 'VCPU=2']);
  assert.match(listed.join(), /VCPU=2,\d{4}-\S+Z,$/);
  assert.deepEqual(await run('consumer', 'list', '--in-tree', 'host-1', '--project', 'shop'), []);
  assert.deepEqual((await run('consumer', 'show', consumer)).slice(0, 6), [
    ['consumer', consumer],
    ['name', ''],
    ['project', 'web'],
    ['user', 'ada'],
    ['type', 'INSTANCE'],
    ['generation', '1'],
  ]);
  assert.deepEqual((await run('consumer', 'set', consumer, '--project', 'shop')).slice(2, 6), [
    ['project', 'shop'],
    ['user', 'ada'],
    ['type', 'INSTANCE'],
    ['generation', '2'],
  ]);
  const { etag } = JSON.parse(await commands.run('consumer', 'show', consumer, '--json'));
  await run('consumer', 'set', consumer, '--type', 'JOB', '--if-match', etag);
  await commands.fails('conflict', /is not what If-Match says/, [
    'consumer',
    'set',
    consumer,
    '--type',
    'X',
    '--if-match',
    etag,
  ]);
  await commands.isWrongUsage(/Nothing is to be changed/, ['consumer', 'set', consumer]);
  await commands.fails('wrongInput', /No consumer with uuid/, ['consumer', 'show', consumer.replace(/1$/, '2')]);
  await commands.fails('failed', /2\.2/, ['consumer', 'list', '--os-placement-api-version', '2.1']);
  assert.deepEqual(await run('provider', 'summary', '--in-tree', 'host-1'), [
    ['host-1', '6f0c9f9e-6c9c-4c39-9d8a-000000000001', 'VCPU=8 MEMORY_MB=1024', 'VCPU=2 MEMORY_MB=0', ''],
  ]);
});

test('the client follows the links of pages to the end', async () => {
  // Hundreds of claims at once may take long on a busy machine.
  const client = connect({ endpoint: server.url, auth: 'admin', version: '2.2', deadlineMs: 300_000 });
  const seen = server.seen.length;
  const hosts = await Array.fromAsync(client.providerSummaries.list({ required: ['!HW_CPU_X86_AVX2'] }));
  assert.deepEqual(
    hosts.map(({ name }) => name),
    ['host-1'],
  );
  assert.equal(server.seen.length, seen + 1);
  const uuids = Array.from({ length: 1001 }, (_, index) => numberedUuid(index));
  const claim = { project_id: 'many', user_id: 'u', consumer_type: 'JOB', consumer_generation: null };
  await client.inventories.set(hosts[0]?.uuid ?? '', {
    inventories: { VCPU: { total: 2000 } },
    resource_provider_generation: (await client.inventories.list(hosts[0]?.uuid ?? '')).resource_provider_generation,
  });
  const allocations = { [hosts[0]?.uuid ?? '']: { resources: { VCPU: 1 } } };
  for (const some of [uuids.slice(0, 400), uuids.slice(400, 800), uuids.slice(800)]) {
    await client.allocations.setMany(Object.fromEntries(some.map((uuid) => [uuid, { ...claim, allocations }])));
  }
  const listed = await Array.fromAsync(client.consumers.list({ project_id: 'many' }));
  assert.deepEqual(
    listed.map(({ uuid }) => uuid),
    uuids,
  );
});
