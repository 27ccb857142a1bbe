import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { hostedPlacement } from './command.ts';
import { startServer, type TestServer } from './servers.ts';

/*
 * A repeated option is refused. Otherwise the last value would win, and the first would be lost without a
 * message.
 */

let server: TestServer;
before(async () => {
  server = await startServer();
});
after(() => server.close());

const run = (...args: readonly string[]) => hostedPlacement(args, { OS_ENDPOINT: server.url, OS_TOKEN: 'admin' });

const consumer = 'b1d0c1a4-52a1-4a5e-8f0c-000000000001';
const host = '0057c0de-0000-4000-8000-000000000001';
const claim = ['allocation', 'set', consumer, '--project', 'web', '--user', 'ada'];

test('options for one provider, by name and by UUID, make one claim together', async () => {
  assert.equal((await run('provider', 'create', 'host-1', '--uuid', host)).code, 0);
  assert.equal((await run('inventory', 'set', 'host-1', 'VCPU=8', 'MEMORY_MB=64', 'DISK_GB=10')).code, 0);
  const parts = ['-a', 'rp=host-1,VCPU=2', '-a', 'rp=host-1,MEMORY_MB=4', '-a', `rp=${host},DISK_GB=1`];
  const { code, stdout, stderr } = await run(...claim, ...parts, '--json');
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout).allocations[host].resources, { VCPU: 2, MEMORY_MB: 4, DISK_GB: 1 });
});

const refused: readonly (readonly [args: readonly string[], says: RegExp])[] = [
  [[...claim, '-a', 'rp=host-1,VCPU=3,VCPU=1'], /'-a, --allocation' gives VCPU of provider host-1 twice\. Give each/],
  [[...claim, '-a', 'rp=host-1,VCPU=3', '-a', 'rp=host-1,VCPU=1'], /gives VCPU of provider host-1 twice/],
  [[...claim, '-a', 'rp=host-1,VCPU=3', '-a', `rp=${host},VCPU=1`], /gives VCPU of provider host-1 twice/],
  [['candidate', 'list', 'VCPU=2', 'VCPU=3'], /'VCPU=3' is invalid.* VCPU is given twice\. Give each class once/],
  [['candidate', 'list', 'VCPU=2', '-r', 'VCPU=3'], /VCPU is given twice/],
  [['candidate', 'list', '-g', '1', '-r', 'VCPU=2', '-r', 'VCPU=3'], /VCPU is given twice/],
  [
    ['candidate', 'list', 'VCPU=2', '-g', '1', '-r', 'MEMORY_MB=2', '-g', '1', '-r', 'DISK_GB=1'],
    /'-g, --group <suffix>' argument '1' is invalid\. Group 1 is given twice\. Give it once, with all its options behind/,
  ],
  [['candidate', 'list', 'VCPU=2', '--in-tree', 'host-1', '--in-tree', 'host-2'], /'--in-tree .* given twice/],
  [['provider', 'list', '-r', 'VCPU=2', '-r', 'VCPU=3'], /VCPU is given twice/],
  [['inventory', 'set', 'host-1', 'VCPU=2', 'VCPU=3'], /'VCPU=3' is invalid.* total of VCPU is given twice/],
  [['inventory', 'set', 'host-1', 'VCPU:reserved=2', 'VCPU:reserved=3'], /reserved of VCPU is given twice/],
  [['provider', 'list', '--name', 'a', '--name', 'b'], /'--name <name>' is given twice\. Give it once/],
  [['provider', 'set', 'host-1', '--parent', 'n1', '--parent', 'n2'], /'--parent <provider>' is given twice/],
  [['candidate', 'list', 'VCPU=2', '--limit', '1', '--limit=2'], /'--limit <number>' is given twice/],
  [
    ['candidate', 'list', 'VCPU=2', '--group-policy', 'none', '--group-policy', 'isolate'],
    /'--group-policy <policy>' is given twice/,
  ],
  [[...claim, '-a', 'rp=host-1,VCPU=3', '--project', 'db'], /'--project <id>' is given twice/],
  [['--os-token', 'joe', 'provider', 'list', '--os-token', 'admin'], /'--os-token <token>' is given twice/],
  // Options whose values are read, and not collected.
  [['candidate', 'why', 'VCPU=2', '--nearest', '1', '--nearest', '2'], /'--nearest <number>' is given twice/],
  [['allocation', 'place', 'VCPU=2', '--count', '1', '--count', '2'], /'--count <number>' is given twice/],
  [
    [...claim, '-a', 'rp=host-1,VCPU=3', '--expires-in', '1h', '--expires-in=2h'],
    /'--expires-in <time>' is given twice/,
  ],
  [[...claim, '-a', 'rp=host-1,VCPU=3', '--type', 'A', '--type', 'B'], /'--type <TYPE>' is given twice/],
  [['allocation', 'place', 'VCPU=2', '--wait', '1s', '--wait', '2s'], /'--wait <time>' is given twice/],
  [['consumer', 'list', '--expiring', '1h', '--expiring', '2h'], /'--expiring \[time\]' is given twice/],
  [['usage', 'records', '--from', '1h', '--from', '2h'], /'--from <time>' is given twice/],
  [['usage', 'report', '--month', '2026-11', '--month', '2026-10'], /'--month <YYYY-MM>' is given twice/],
  [['usage', 'report', '--by', 'user', '--by', 'day'], /'--by <what>' is given twice/],
  [
    ['provider', 'set', 'host-1', '--parent', 'n1', '--no-parent'],
    /'--no-parent' cannot be used with option '--parent/,
  ],
  [
    ['provider', 'set', 'host-1', '--no-parent', '--parent', 'n1'],
    /'--no-parent' cannot be used with option '--parent/,
  ],
];

for (const [args, says] of refused) {
  test(`refused: ${args.join(' ')}`, async () => {
    const before = server.seen.length;
    const { code, stdout, stderr } = await run(...args);
    assert.deepEqual([code, stdout], [2, ''], stderr);
    assert.match(stderr, says);
    const sent = server.seen.slice(before);
    assert.ok(
      sent.every(({ method, url }) => method === 'GET' && !url.includes('candidates')),
      JSON.stringify(sent),
    );
  });
}

test('an option on the command line and in the environment is not given twice', async () => {
  const { code, stderr } = await run('version', '--os-token', 'joe');
  assert.equal(code, 0, stderr);
});

test('one class in several groups, and one provider as the tree of several groups, are not given twice', async () => {
  const groups = ['VCPU=1', '--in-tree', 'host-1', '-g', '1', '-r', 'VCPU=2', '--in-tree', 'host-1'];
  const { code, stdout, stderr } = await run('candidate', 'list', ...groups, '--json');
  assert.equal(code, 0, stderr);
  const [only, ...more] = JSON.parse(stdout).allocation_requests;
  assert.deepEqual([only.allocations, more], [{ [host]: { resources: { VCPU: 3 } } }, []]);
});

test('options whose values are collected may be given twice', async () => {
  const query = ['--root-required', '!HW_CPU_X86_VMX', '--root-required', '!HW_CPU_X86_AVX', '--order', 'random'];
  const groups = [
    '-g',
    '1',
    '-r',
    'VCPU=1',
    '--required',
    '!HW_CPU_X86_VMX',
    '--required',
    '!HW_CPU_X86_AVX',
    '-g',
    '2',
  ];
  const { code, stderr } = await run(
    ...['candidate', 'list', ...query, '--order', 'free:VCPU', ...groups, '-r', 'VCPU=1'],
  );
  assert.equal(code, 0, stderr);
});
