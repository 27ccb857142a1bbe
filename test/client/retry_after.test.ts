import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError, connect } from '../../src/client/index.ts';
import { retryAfterMs } from '../../src/client/retry_after.ts';
import { startFront } from './servers.ts';

const date = 'Sun, 06 Nov 1994 08:49:37 GMT';
const ms = (value: string, more: Readonly<Record<string, string>> = { date }) =>
  retryAfterMs(new Headers({ 'retry-after': value, ...more }));

test('Retry-After is of seconds, or a date in any form of RFC 9110, which counts from the date of the answer', () => {
  for (const [value, seconds] of [
    ['0', 0],
    ['120', 120],
    ['Sun, 06 Nov 1994 08:49:47 GMT', 10],
    ['Sunday, 06-Nov-94 08:49:47 GMT', 10],
    ['Sun Nov  6 08:49:47 1994', 10],
    ['Tuesday, 08-Nov-94 08:49:37 GMT', 2 * 86_400],
    ['Sun, 06 Nov 1994 08:49:30 GMT', 0], // it is over
    ['soon', 0],
    ['-5', 0],
    ['1.5', 0],
    ['2030', 2030],
    ['9'.repeat(10), 9_999_999_999],
    ['9'.repeat(400), 0],
    ['Monday 5', 0],
    ['Sun, 06 Nov 1994 08:49:47 +0100', 0],
    ['Sun, 06 Nov 1994 08:49:47', 0],
    ['Sunday, 06 Nov 1994 08:49:47 GMT', 0],
    ['Sun Nov  6 08:49:47 1994 GMT', 0],
    ['Sun, 06 Nov 1994 08:99:47 GMT', 0],
    ['', 0],
  ] as const)
    assert.equal(ms(value), seconds * 1000, value);
  assert.equal(retryAfterMs(new Headers()), 0);
  const inAMinute = ms(new Date(Date.now() + 60_000).toUTCString(), {});
  assert.ok(inAMinute > 55_000 && inAMinute <= 60_000, `${inAMinute}`);
});

test('a request is not repeated before the date of Retry-After, and fails at once if that is after the deadline', async () => {
  const front = await startFront((_incoming, response) => {
    response.writeHead(503, { 'Retry-After': new Date(Date.now() + 3_600_000).toUTCString() }).end('{}');
  });
  try {
    const placement = connect({ endpoint: front.url, auth: 'admin', version: '1.39' });
    await assert.rejects(placement.providers.list(), (error) => error instanceof ApiError && error.status === 503);
    assert.equal(front.seen.length, 1);
  } finally {
    await front.close();
  }
});
