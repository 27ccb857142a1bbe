/** What `placement watch` prints: the names, and what is other than before. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { until } from '../support/until.ts';
import { commandsOn, startPlacement } from './command.ts';
import { forward, startFront, startServer, type TestServer } from './servers.ts';

let server: TestServer;
before(async () => {
  server = await startServer({}, { history: { enabled: true, keep: 3600 } });
  await run('provider', 'create', 'rack-1');
  await run('provider', 'create', 'host-1', '--uuid', host, '--parent', 'rack-1');
  await run('inventory', 'set', 'host-1', 'VCPU=8');
});
after(() => server.close());

const host = '0057c0de-0000-4000-8000-000000000002';

const { env, run, fails, isWrongUsage } = commandsOn(() => server);

/** Starts `watch` in a process of its own, calls back when it follows, and ends it. */
async function withWatch(args: readonly string[], use: (said: (line: RegExp) => Promise<unknown>) => Promise<void>) {
  const child = startPlacement(['watch', ...args], env());
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const said = (line: RegExp) => until(`${line} in: ${output}`, () => line.test(output));
  try {
    await said(/was read/);
    await use(said);
  } finally {
    child.kill('SIGKILL');
  }
  return output;
}

test('a line has time, name and root, and what was and is', async () => {
  await withWatch([], async (said) => {
    await run('inventory', 'set', 'host-1', 'VCPU=16', 'VCPU:reserved=1', 'DISK_GB=100');
    await said(/^\d{4}-\d\d-\d\dT[\d:]{8}Z host-1 of rack-1: .*VCPU total 8 → 16.*VCPU reserved 0 → 1/m);
    await said(/host-1 of rack-1: .*DISK_GB 100 new/);
    await run('allocation', 'place', 'VCPU=3', '--project', 'ci', '--consumer', 'job-1');
    await said(/host-1 of rack-1: VCPU used 0 → 3 of 15$/m);
    await run('trait', 'create', 'CUSTOM_FAST');
    await said(/traits: \+CUSTOM_FAST$/m);
    await run('trait', 'set', 'host-1', 'CUSTOM_FAST');
    await said(/host-1 of rack-1: \+CUSTOM_FAST$/m);
    await run('trait', 'set', 'host-1');
    await said(/host-1 of rack-1: -CUSTOM_FAST$/m);
    await run('aggregate', 'set', 'host-1', host);
    await said(new RegExp(`host-1 of rack-1: \\+aggregate ${host}$`, 'm'));
    await run('class', 'create', 'CUSTOM_TAPE');
    await said(/resource classes: \+CUSTOM_TAPE$/m);
    await run('inventory', 'delete', 'host-1', 'DISK_GB');
    await said(/host-1 of rack-1: no DISK_GB any more$/m);
    await run('provider', 'set', 'host-1', '--name', 'host-one', '--no-parent');
    await said(/ host-one: name host-1 → host-one, a root now$/m);
    await run('provider', 'set', 'host-one', '--name', 'host-1', '--parent', 'rack-1');
    await said(/host-1 of rack-1: name host-one → host-1, below rack-1 now$/m);
    await run('provider', 'create', 'spare');
    await said(/ spare: new: /);
    await run('provider', 'delete', 'spare');
    await said(/ spare: deleted$/m);
  });
});

test('lines about consumers say what they have and had', async () => {
  const job = ['--project', 'ci', '--consumer', 'job-2'];
  await withWatch(['--parts', 'consumers'], async (said) => {
    await run('allocation', 'place', 'VCPU=1', ...job, '--expires-in', '1h');
    await said(/consumer \S+ \(job-2\): has VCPU=1 of host-1 until \d{4}-\S+Z, project ci$/m);
    await run('allocation', 'place', 'VCPU=2', ...job, '--move');
    await said(/\(job-2\): has VCPU=2 of host-1 until \S+Z, project ci; had VCPU=1 of host-1$/m);
    await run('allocation', 'delete', 'ci/job-1');
    await said(/\(job-1\): gone: released, had VCPU=3 of host-1$/m);
  });
});

test('on standard error one line says that the service is away, and one that it answers again', async () => {
  let isAway = false;
  const front = await startFront((incoming, response) => {
    if (isAway) response.destroy();
    else forward(server.url, incoming, response);
  });
  const child = startPlacement(['watch', '--json'], env({ OS_ENDPOINT: front.url }));
  let [output, errors] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  try {
    await until('it follows', () => output.includes('was read'));
    isAway = true;
    await run('trait', 'create', 'CUSTOM_MEANWHILE');
    await until('the outage is told', () => errors.includes('\n'));
    const before = front.seen.length;
    await until('it asks again', () => front.seen.length > before + 1);
    isAway = false;
    await until('the end of the outage is told', () => errors.includes('answers again'));
    await until('the change is told', () => output.includes('+CUSTOM_MEANWHILE'));
  } finally {
    child.kill('SIGKILL');
    await front.close();
  }
  const time = String.raw`\d{4}-\d\d-\d\dT[\d:]{8}Z`;
  assert.match(
    errors,
    new RegExp(
      `^${time} The service does not answer, and is asked again until it does: .+\n${time} The service answers again\\.\n$`,
    ),
  );
});

test('it ends where nobody reads its output any more, and where no service answers at the start', async () => {
  const child = startPlacement(['watch'], env());
  try {
    await once(child.stdout, 'data');
    child.stdout.destroy();
    await run('trait', 'create', 'CUSTOM_UNREAD');
    await until('it has ended', () => child.exitCode !== null);
    assert.equal(child.exitCode, 0);
  } finally {
    child.kill('SIGKILL');
  }
  await fails('noAnswer', /No answer from http:\/\/127\.0\.0\.1:9: /, ['watch'], { OS_ENDPOINT: 'http://127.0.0.1:9' });
});

test('for programs the lines are JSON, CSV or values', async () => {
  const json = await withWatch(['--json'], async (said) => {
    await run('inventory', 'set', 'host-1', 'VCPU=17');
    await said(/VCPU total 16/);
  });
  const changes = json
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const { token, time, ...change } = changes.at(-1);
  assert.ok(token && Date.parse(time) > 0);
  const about = { what: 'provider', uuid: host, name: 'host-1', root: 'rack-1', change: 'VCPU total 16 → 17' };
  assert.deepEqual(change, { resource_provider: host, parts: ['inventories'], ...about });
  const csv = await withWatch(['--format', 'csv', '-c', 'name', '-c', 'change'], async (said) => {
    await run('inventory', 'set', 'host-1', 'VCPU=18', 'VCPU:reserved=0');
    await said(/VCPU total 17/);
  });
  assert.match(csv, /^name,change\n,was read: 2 providers\nhost-1,"VCPU total 17 → 18, VCPU reserved 1 → 0"\n$/);
  await isWrongUsage(/There is no column size\. Those there are: time, what, name, root, uuid, change/, [
    ...['watch', '-c', 'size'],
  ]);
});
