/** What a second claim for a consumer does: it is refused, or it keeps what it does not name. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect, consumerUuid } from '../../src/client/index.ts';
import { commandsOn } from './command.ts';
import { startServer, type TestServer } from './servers.ts';

let server: TestServer;
before(async () => {
  server = await startServer();
  for (const host of ['host-1', 'host-2']) {
    await run('provider', 'create', host);
    await run('inventory', 'set', host, 'VCPU=8');
  }
});
after(() => server.close());

const { run, fails, isWrongUsage } = commandsOn(() => server);

/** All that is known of a consumer of project ci, with its term in seconds from now. */
async function seen(name: string) {
  const { allocations, consumers } = connect({ endpoint: server.url, auth: 'admin', oldest: '2.6' });
  const uuid = consumerUuid('ci', name);
  const [held, { expires_at }] = [await allocations.show(uuid), await consumers.show(uuid)];
  const termS = expires_at == null ? undefined : (Date.parse(expires_at) - Date.now()) / 1000;
  return { held, termS };
}

/** Whether a term is the one that was set some seconds ago. */
const isAbout = (termS: number | undefined, seconds: number) =>
  assert.ok(termS !== undefined && termS > seconds - 120 && termS <= seconds + 2, `${termS} s, not ${seconds} s`);

const place = (name: string, ...args: readonly string[]) => [
  ...['allocation', 'place', 'VCPU=2', '--consumer', name, '--project', 'ci'],
  ...args,
];

test('a consumer with allocations is not placed again, and stays as it is', async () => {
  await run(...place('job-1', '--in-tree', 'host-1', '--expires-in', '3600', '--type', 'JOB', '--user', 'ada'));
  const before = await seen('job-1');
  const again = place('job-1', '--in-tree', 'host-2');
  const says = /\(job-1\) has something already\. "placement allocation show" shows it, --move gives it another place/;
  for (const args of [again, [...again, '--dry-run'], [...again, '--wait', '5'], again.toSpliced(4, 1, 'ci/job-1')]) {
    await fails('conflict', says, args);
  }
  const { held, termS } = await seen('job-1');
  assert.deepEqual(held, before.held);
  isAbout(termS, 3600);
});

test('--move places a consumer again, and keeps owner, type and term', async () => {
  await run(...place('job-2', '--in-tree', 'host-1', '--expires-in', '3600', '--type', 'JOB', '--user', 'ada'));
  assert.match(
    await run(...place('job-2', '--in-tree', 'host-2', '--move', '--dry-run')),
    /would get this, in the place of what it has\. Nothing was written/,
  );
  const moved = await run(...place('job-2', '--in-tree', 'host-2', '--move'));
  assert.match(moved, /^Consumer \S+ \(job-2\) has this until \S+Z, in the place of what it had\.\n[\s\S]*\| host-2 /);
  const { held, termS } = await seen('job-2');
  assert.deepEqual([held.project_id, held.user_id, held.consumer_type], ['ci', 'ada', 'JOB']);
  isAbout(termS, 3600);
  await run(...place('job-2', '--move', '--expires-in', '7200'));
  isAbout((await seen('job-2')).termS, 7200);
});

test('--move needs a consumer with allocations', async () => {
  await fails('wrongInput', /has nothing that could move\. Leave out --move/, place('job-3', '--move'));
  await isWrongUsage(/--move needs --consumer/, ['allocation', 'place', 'VCPU=1', '--move', '--project', 'ci']);
});

test('allocation set keeps the term of a consumer, and sets none for a consumer without a term', async () => {
  const set = (name: string, amounts: string, ...args: readonly string[]) =>
    run('allocation', 'set', `ci/${name}`, '-a', `rp=host-1,${amounts}`, ...args);
  await set('job-4', 'VCPU=1', '--expires-in', '3600', '--user', 'ada', '--type', 'JOB');
  await set('job-4', 'VCPU=2');
  const { held, termS } = await seen('job-4');
  isAbout(termS, 3600);
  assert.deepEqual([held.user_id, held.consumer_type], ['ada', 'JOB']);
  assert.deepEqual(
    Object.values(held.allocations).map(({ resources }) => resources),
    [{ VCPU: 2 }],
  );
  await set('job-4', 'VCPU=2', '--expires-in', '7200');
  isAbout((await seen('job-4')).termS, 7200);
  await set('job-5', 'VCPU=1');
  await set('job-5', 'VCPU=2');
  assert.equal((await seen('job-5')).termS, undefined);
});
