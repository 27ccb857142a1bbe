/** `placement ... --if-match` writes only if the resource still has this tag. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { at } from '../support/requests.ts';
import { commandsOn } from './command.ts';
import { startServer, type TestServer } from './servers.ts';

let server: TestServer;
before(async () => {
  server = await startServer();
});
after(() => server.close());

const commands = commandsOn(() => server);
const consumer = 'b1d0c1a4-52a1-4a5e-8f0c-000000000001';
const claim = ['allocation', 'set', consumer, '--project', 'web', '--user', 'ada', '-a'];

/** Runs a command that must succeed. @returns its output as JSON */
async function run(...args: readonly string[]): Promise<unknown> {
  return JSON.parse(await commands.run(...args, '--json'));
}

/** The entity tag that a command prints. */
const tagOf = async (...show: readonly string[]): Promise<string> => String(at(await run(...show), 'etag'));

/**
 * For each resource: the command that shows it with its tag, how another client changes it, and the commands that write
 * it.
 */
const resources: readonly {
  readonly show: readonly string[];
  readonly change: readonly string[];
  readonly writes: readonly (readonly string[])[];
}[] = [
  {
    show: ['allocation', 'show', consumer],
    change: [...claim, 'rp=host-1,VCPU=2'],
    writes: [
      [...claim, 'rp=host-1,VCPU=3'],
      ['allocation', 'delete', consumer],
    ],
  },
  {
    show: ['inventory', 'list', 'host-1'],
    change: ['inventory', 'set', 'host-1', 'VCPU=9'],
    writes: [
      ['inventory', 'set', 'host-1', 'VCPU=10', 'DISK_GB=5'],
      ['inventory', 'delete', 'host-1', 'VCPU'],
    ],
  },
  {
    show: ['provider', 'show', 'host-1'],
    change: ['provider', 'set', 'host-1', '--parent', 'rack'],
    writes: [
      ['provider', 'set', 'host-1', '--no-parent'],
      ['provider', 'delete', 'host-1'],
    ],
  },
];

test('a resource that was changed since its tag was read is not written, and an unchanged one is', async () => {
  await run('provider', 'create', 'rack');
  await run('provider', 'create', 'host-1');
  await run('inventory', 'set', 'host-1', 'VCPU=8');
  await run(...claim, 'rp=host-1,VCPU=1');
  for (const { show, change, writes } of resources) {
    const old = await tagOf(...show);
    await run(...change);
    const changed = await run(...show);
    server.seen.length = 0;
    for (const write of writes) {
      await commands.fails('conflict', /Read it again, and decide by what it is now\. .*412/, [
        ...write,
        '--if-match',
        old,
      ]);
    }
    const sent = server.seen.filter(({ method }) => method !== 'GET');
    assert.equal(
      sent.length,
      writes.length,
      'a resource that was changed does not get its old tag back: the command does not repeat the write',
    );
    assert.deepEqual(await run(...show), changed);
    for (const write of writes) await run(...write, '--if-match', await tagOf(...show));
  }
  assert.deepEqual(
    [await run('allocation', 'show', consumer), await run('provider', 'list', '--name', 'host-1')].map(
      (shown) => at(shown, 'allocations') ?? shown,
    ),
    [{}, []],
  );
});

test('a resource without a tag is not written with --if-match', async () => {
  await run('provider', 'create', 'host-2');
  const remove = ['provider', 'delete', 'host-2', '--if-match'];
  await commands.fails('wrongInput', /neither \* nor a list of entity tags/, [...remove, '"unclosed']);
  await commands.fails('failed', /needs microversion 2\.1/, [...remove, '*', '--os-placement-api-version', '1.39']);
  await run(...remove, '*');
});
