/** A short soak: `make soak` is the long one, and `SOAK_SECONDS=60` makes this one longer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { withStandIn } from '../keystone/stand_in.ts';
import { seedFor } from '../races/random.ts';
import { engines } from '../support/engines.ts';
import { until } from '../support/until.ts';
import { deploy } from './deployment.ts';
import { openLedger } from './ledger.ts';
import { openLogs } from './logs.ts';
import { soak } from './soak.ts';

/** On each database. */
const { SOAK_SECONDS = '10' } = process.env;

test('a secret in the logs is found in each of its forms, and in pieces', () => {
  const secret = 'pass word/1';
  const logs = openLogs(() => [secret]);
  const read = logs.reader();
  read('all is well\nconnect to pass wo');
  read(`rd/1\n/?p=${encodeURIComponent(secret)}\nBasic ${Buffer.from(`${secret}:x`).toString('base64')}\n`);
  read(`${Buffer.from(secret).toString('hex')}\nUnexpected error\npass word/2\n`);
  assert.equal(logs.leaks.length, 4);
  assert.deepEqual(logs.unexpected, ['Unexpected error']);
});

test('a 500 is counted also if only the logs have it, and a refusal does not end a time without service', async () => {
  const logs = openLogs(() => []);
  const ledger = openLedger(logs, () => []);
  const request = { method: 'GET', path: '/traits', microversion: 1000 } as const;
  logs.reader()('{"status":503}\n{"status":500}\n');
  ledger.watch(503, request);
  assert.deepEqual(ledger.complaints(), ['{"status":500}']);
  ledger.watch(500, request);
  ledger.watch(502, request);
  assert.equal(ledger.complaints().length, 2);
  const longest = () => ledger.report().find((line) => line.startsWith('longest'));
  const before = longest();
  await sleep(150);
  ledger.watch(200, { ...request, path: '/' });
  ledger.watch(401, request);
  ledger.watch('cut', request);
  assert.equal(longest(), before);
  ledger.watch(200, request);
  assert.notEqual(longest(), before);
});

test('a service that refuses all writes fails a soak', () => {
  const ledger = openLedger(
    openLogs(() => []),
    () => [],
  );
  for (let count = 0; count < 20; count += 1)
    ledger.watch(409, { method: 'PUT', path: '/traits/CUSTOM_A', microversion: 1006 });
  assert.deepEqual(ledger.complaints(), ['only 0 of 20 writes were done']);
  ledger.watch(201, { method: 'PUT', path: '/traits/CUSTOM_A', microversion: 1006 });
  assert.equal(ledger.complaints().length, 1);
  ledger.watch(201, { method: 'PUT', path: '/traits/CUSTOM_B', microversion: 1006 });
  assert.deepEqual(ledger.complaints(), []);
});

test('a process that ends unexpectedly is noted and started again', async () => {
  await withStandIn(async (keystone) => {
    const { servers, close } = await deploy('embedded', keystone);
    try {
      for (const server of servers) {
        const { pid } = server;
        process.kill(pid, 'SIGKILL');
        await until('another process serves', async () => server.pid !== pid && (await fetch(server.url)).ok);
        assert.equal(server.endings.length, 1);
        await server.kill();
        assert.equal(server.endings.length, 1);
      }
    } finally {
      await close();
    }
  });
});

for (const engine of engines) {
  test(`no write is lost, no amount is allocated twice, and no answer is stale under faults, on ${engine}`, async (t) => {
    const ledger = await soak(engine, { seconds: Number(SOAK_SECONDS), seed: seedFor(t) });
    for (const line of ledger.report()) t.diagnostic(line);
    assert.deepEqual(ledger.complaints(), []);
    assert.ok(ledger.logs.length > 10_000, 'there are logs to search');
    assert.ok(ledger.histories.checked > ledger.histories.undecided);
    assert.ok(ledger.histories.followed > 0);
    assert.ok(ledger.faults.size >= 2);
  });
}
