/** Errors of which each has its own cause, and for which all requests get a 503: none may be taken for a mistake of the service. */
import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import pg from 'pg';
import { pino } from 'pino';
import { failureKind, LockWaitTooLong } from '../../db/engine/failures.ts';
import { openOutages } from '../../src/log/outages.ts';

/** The error of a connection that cannot be opened. */
async function errorOf(connectionString: string): Promise<unknown> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 5_000 });
  client.on('error', () => {});
  return client.connect().then(
    () => assert.fail('it is open'),
    (error: unknown) => error,
  );
}

test('a UNIX socket that is gone with its server is an unavailable database', async () => {
  const error = await errorOf('postgresql://placement@/placement?host=/nowhere');
  assert.match(String(error), /ENOENT/);
  assert.equal(failureKind(error), 'unavailable');
});

test('so is a server whose certificate has expired, or that has no TLS', () => {
  const expired = Object.assign(new Error('certificate has expired'), { code: 'CERT_HAS_EXPIRED' });
  for (const error of [expired, new Error('The server does not support SSL connections')]) {
    assert.equal(failureKind(error), 'unavailable', error.message);
  }
});

test('a missing file of the service, and a mistake of the program, are none', () => {
  const file = Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT', syscall: 'open' });
  for (const error of [file, new TypeError('x is undefined')]) assert.equal(failureKind(error), undefined);
});

test('requests that failed after waiting for a lock or a statement are one line in the log, with what to check', () => {
  const lines: string[] = [];
  const log = new Writable({ write: (chunk, _, done) => done(void lines.push(String(chunk))) });
  const outages = openOutages(pino(log));
  const canceled = (reason: string) =>
    Object.assign(new Error(`canceling statement due to ${reason}`), { severity: 'ERROR', code: '57014' });
  for (let turn = 0; turn < 3; turn += 1) {
    assert.ok(outages.notice(new LockWaitTooLong(canceled('lock timeout'))));
    assert.ok(outages.notice(canceled('statement timeout')));
  }
  assert.equal(lines.length, 2, lines.join(''));
  assert.match(lines[0] ?? '', /"level":40.*Another program holds a lock.*pg_stat_activity/);
  assert.match(lines[1] ?? '', /"level":40.*statement_timeout/);
});
