/** `allocation place --count`: several consumers together, all or none. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { exitCodes } from '../../src/cli/exit_codes.ts';
import { connect, consumerUuid } from '../../src/client/index.ts';
import { commandsOn, hostedPlacement } from './command.ts';
import { startServer, type TestServer } from './servers.ts';

let server: TestServer;
before(async () => {
  server = await startServer();
  for (const host of ['host-1', 'host-2', 'host-3']) {
    await run('provider', 'create', host);
    await run('inventory', 'set', host, 'PGPU=8');
  }
});
after(() => server.close());

const { env, run, fails, isWrongUsage } = commandsOn(() => server);

const place = (...args: readonly string[]) => ['allocation', 'place', ...args, '--project', 'ci'];
const rows = async (...args: readonly string[]) => (await run(...args, '--format', 'value')).trim().split('\n');
const consumers = () =>
  Array.fromAsync(connect({ endpoint: server.url, auth: 'admin', oldest: '2.9' }).consumers.list());

/** The message about a gang that does not fit. */
async function refused(...args: readonly string[]): Promise<string> {
  const { code, stderr } = await hostedPlacement(place(...args), env());
  assert.equal(code, exitCodes.full.code, stderr);
  return stderr;
}

test('with --apart each consumer of a gang is on another host, and has a numbered name', async () => {
  const placed = await run(
    ...place('PGPU=2', '--consumer', 'train', '--count', '3', '--apart', '--expires-in', '1h30m'),
  );
  assert.match(placed, /^3 consumers have this until \d{4}-\S+Z\.\n/);
  const held = await rows('holdings', '--project', 'ci', '-c', 'name', '-c', 'provider', '-c', 'resources');
  const sorted = held.map((row) => row.split(' ')).toSorted();
  assert.deepEqual(
    sorted.map(([name, , resources]) => [name, resources]),
    ['train-1', 'train-2', 'train-3'].map((name) => [name, 'PGPU=2']),
  );
  assert.deepEqual(sorted.map(([, provider]) => provider).toSorted(), ['host-1', 'host-2', 'host-3']);
  const [{ expires_at } = assert.fail()] = await consumers();
  const termS = (Date.parse(expires_at ?? '') - Date.now()) / 1000;
  assert.ok(termS > 5000 && termS <= 5402, `${termS} s`);
});

test('a gang that does not fit is not placed at all', async () => {
  const before = (await consumers()).length;
  const apart = await refused('PGPU=1', '--count', '4', '--apart');
  assert.match(apart, /^placement: The 4 consumers do not fit together, each on another host\. Nothing was placed\.\n/);
  assert.match(apart, /\n3 hosts have room for one of them\.\n/);
  assert.match(apart, /\| host-1 \| [0-9a-f-]{36} \| +6 \|\n/);
  assert.match(apart, /\nOne of them alone:\nIt fits 3 of 3 trees \(hosts\)\./);
  assert.match(await refused('PGPU=3', '--count', '7'), /\nThere is room for 6 of them\.\n/);
  assert.match(await refused('PGPU=7', '--count', '2'), /\nThere is room for 0 of them\.\nOne[\s\S]*host-1 has 6 left/);
  assert.match(await run(...place('PGPU=6', '--count', '3', '--dry-run')), /^3 consumers would get this\. Nothing was/);
  assert.equal((await consumers()).length, before);
});

test('without names the consumers get UUIDs, which are printed', async () => {
  const placed = await rows(...place('PGPU=1', '--count', '2'), '-c', 'consumer', '-c', 'resources');
  const uuids = placed.map((row) => row.split(' ')[0]);
  assert.equal(new Set(uuids).size, 2);
  const there = (await consumers()).map(({ uuid }) => uuid);
  assert.ok(uuids.every((uuid) => there.includes(`${uuid}`)));
  const json = JSON.parse(await run(...place('PGPU=1', '--count', '1'), '--json'));
  assert.equal(json.length, 1);
  assert.deepEqual(
    Object.values(json[0].allocations).map((has) => (has as { resources: object }).resources),
    [{ PGPU: 1 }],
  );
});

test('a gang with a consumer that has allocations is refused, and is moved with --move', async () => {
  await run(...place('PGPU=1', '--consumer', 'again', '--count', '2'));
  const more = place('PGPU=1', '--consumer', 'again', '--count', '3');
  await fails('conflict', /\(again-1\), \S+ \(again-2\) have something already\./, more);
  await fails('wrongInput', /has nothing that could move/, [...more, '--move']);
  assert.ok(!(await consumers()).some(({ uuid }) => uuid === consumerUuid('ci', 'again-3')));
  const moved = await run(...place('PGPU=2', '--consumer', 'again', '--count', '2', '--move'));
  assert.match(moved, /^2 consumers have this now, in the place of what they had\.\n/);
});

test('options that need each other are refused alone', async () => {
  await isWrongUsage(/--apart needs --count/, place('PGPU=1', '--apart'));
  for (const count of ['0', '1.5', 'many', '501']) {
    await isWrongUsage(/whole number from 1 to 500/, place('PGPU=1', '--count', count));
  }
  const uuid = consumerUuid('ci', 'x');
  await isWrongUsage(/Give --consumer as a name/, place('PGPU=1', '--count', '2', '--consumer', uuid));
});
