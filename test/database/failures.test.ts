/** Errors of which each has its own cause, and for which all requests get a 503: none may be taken for a mistake of the service. */
import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import pg from 'pg';
import { pino } from 'pino';
import {
  failureKind,
  isConnectionRefused,
  isFaultOfOne,
  isOfOneWrite,
  isPassing,
  LockWaitTooLong,
  mayBeOfSession,
  NoIdLeft,
  repeatLostRaces,
} from '../../db/engine/failures.ts';
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

test('a server whose certificate has expired, or that has no TLS, is an unavailable database', () => {
  const expired = Object.assign(new Error('certificate has expired'), { code: 'CERT_HAS_EXPIRED' });
  for (const error of [expired, new Error('The server does not support SSL connections')]) {
    assert.equal(failureKind(error), 'unavailable', error.message);
  }
});

test('a missing file of the service, or a mistake of the program, is no unavailable database', () => {
  const file = Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT', syscall: 'open' });
  for (const error of [file, new TypeError('x is undefined')]) assert.equal(failureKind(error), undefined);
});

const ofServer = (code: string, message = 'refused', routine?: string) =>
  Object.assign(new Error(message), { severity: 'ERROR', code, routine });
const ofNetwork = (code: string) => Object.assign(new Error(code), { code });

/** An error, its kind, and what else holds for it. */
const meanings: readonly (readonly [error: Error, kind: string | undefined, ...facts: readonly string[]])[] = [
  [ofServer('53300', 'sorry, too many clients already'), 'no connection left', 'passes', 'refused connection'],
  [ofServer('08P01', 'no more connections allowed'), 'no connection left', 'passes', 'refused connection'],
  [ofServer('08P01', 'password authentication failed'), 'access refused', 'refused connection'],
  [ofServer('28P01'), 'access refused', 'refused connection'],
  [ofServer('28000'), 'access refused', 'refused connection'],
  [ofServer('3D000'), 'access refused', 'refused connection'],
  [ofServer('55000', 'closed', 'InitPostgres'), 'access refused', 'refused connection'],
  [ofServer('55000', 'closed', 'CheckMyDatabase'), 'access refused', 'refused connection'],
  [ofServer('55000', 'no replica identity', 'CheckCmdReplicaIdentity'), undefined, 'of one item'],
  [ofServer('55000', 'recovery', 'pg_current_wal_insert_lsn'), 'read-only', 'of the session'],
  [ofServer('25006'), 'read-only', 'of the session'],
  ...['57P01', '57P02', '57P03', '08006'].map((code) => [ofServer(code), 'unavailable', 'passes'] as const),
  ...['57P04', '57P05', '25P03', '25P04'].map((code) => [ofServer(code), 'unavailable'] as const),
  ...['53100', '53200', '53400', '58030'].map((code) => [ofServer(code), 'no space left'] as const),
  ...['42P05', '26000'].map((code) => [ofServer(code), 'prepared statements lost'] as const),
  ...['42P01', '42703', '42883', '42704', '3F000', '42P10'].map(
    (code) => [ofServer(code), 'other schema', 'of the session'] as const,
  ),
  [ofServer('42501'), 'not permitted', 'of the session', 'of one item'],
  [ofServer('57014'), 'timed out'],
  [ofServer('55P03'), 'lock refused', 'of one item'],
  ...['40P01', '40001'].map((code) => [ofServer(code), 'lost race'] as const),
  [ofServer('23505'), 'taken', 'of one item'],
  [ofServer('22003'), 'number too large', 'of one item', 'of one write'],
  ...['22001', '22P05'].map((code) => [ofServer(code), 'text not storable', 'of one item', 'of one write'] as const),
  [new NoIdLeft('spent'), 'no id left', 'of one item', 'of one write'],
  [ofServer('XX000'), undefined, 'of one item'],
  ...['ECONNRESET', 'EMFILE', 'EADDRNOTAVAIL', 'EWRONGSERVER'].map((code) => [ofNetwork(code), 'unavailable'] as const),
  [new Error('Query read timeout'), 'unavailable'],
  [Object.assign(ofNetwork('EMFILE'), { syscall: 'open' }), undefined], // of a file
  // Of several servers.
  [new AggregateError([ofNetwork('ECONNREFUSED'), ofServer('57P03')]), 'unavailable'],
  [new AggregateError([ofNetwork('ECONNREFUSED'), ofServer('53300')]), 'no connection left', 'refused connection'],
  [new AggregateError([ofNetwork('ECONNREFUSED'), new TypeError('x is undefined')]), undefined],
  [new AggregateError([]), undefined],
];

test('each SQLSTATE has its meaning: for the client, for the connection, and for the other items of a batch', () => {
  const facts = {
    passes: isPassing,
    'refused connection': isConnectionRefused,
    'of the session': mayBeOfSession,
    'of one item': isFaultOfOne,
    'of one write': isOfOneWrite,
  };
  for (const [error, kind, ...expected] of meanings) {
    const holding = Object.entries(facts).flatMap(([name, holds]) => (holds(error) ? [name] : []));
    const what = `${'code' in error ? error.code : error.name} ${error.message}`;
    assert.deepEqual([failureKind(error), ...holding], [kind, ...expected], what);
  }
});

test('an operation that lost a race is done ten times at most, and one with another error once', async () => {
  for (const [code, times] of [
    ['40P01', 10],
    ['40001', 10],
    ['23505', 1],
  ] as const) {
    let done = 0;
    const operation = async () => {
      done += 1;
      throw ofServer(code);
    };
    await assert.rejects(repeatLostRaces(operation), { code });
    assert.equal(done, times, code);
  }
  let left = 9;
  assert.equal(await repeatLostRaces(async () => (left-- > 0 ? Promise.reject(ofServer('40001')) : 'done')), 'done');
});

test('requests that failed after waiting for a lock or a statement are one line in the log, with what to check', () => {
  const lines: string[] = [];
  const log = new Writable({ write: (chunk, _, done) => done(void lines.push(String(chunk))) });
  const outages = openOutages(pino(log));
  const canceled = (reason: string) => ofServer('57014', `canceling statement due to ${reason}`);
  for (let turn = 0; turn < 3; turn += 1) {
    assert.ok(outages.notice(new LockWaitTooLong(canceled('lock timeout'))));
    assert.ok(outages.notice(canceled('statement timeout')));
  }
  assert.equal(lines.length, 2, lines.join(''));
  assert.match(lines[0] ?? '', /"level":40.*Another program holds a lock.*pg_stat_activity/);
  assert.match(lines[1] ?? '', /"level":40.*statement_timeout/);
});
