/** The reason why requests fail is logged at the beginning, once a minute, and at the end. */
import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { openRepeatedFailures } from '../../src/log/repeated_failures.ts';
import { until } from '../support/until.ts';

/** @param minuteMs what counts as a minute */
function noted(minuteMs: number) {
  const lines: Readonly<Record<string, unknown>>[] = [];
  const log = new Writable({ write: (chunk, _, done) => done(void lines.push(JSON.parse(String(chunk)))) });
  const logger = pino({ base: null, timestamp: false, formatters: { level: (level) => ({ level }) } }, log);
  return { lines, failures: openRepeatedFailures(logger, minuteMs) };
}

const full = 'The disk is full: writes are answered 503';
const name = 'The disk is full';

test('a reason is logged when it begins, and after a minute without such a failure, with the number of failures', async () => {
  const { lines, failures } = noted(50);
  for (const reason of ['no room', 'no space', 'no room']) failures.failed(full, { name, reason });
  assert.deepEqual(lines.splice(0), [{ level: 'warn', msg: full, reason: 'no room' }]);
  await until('it is over', async () => lines.length > 0);
  const [{ seconds, ...end } = {}] = lines.splice(0);
  assert.deepEqual(end, {
    level: 'info',
    msg: 'Nothing failed for this reason for a minute: The disk is full',
    failures: 3,
  });
  assert.ok(typeof seconds === 'number' && seconds < 60);
  await sleep(100);
  assert.equal(lines.length, 0);
  failures.failed(full, { name, reason: 'no room' });
  assert.deepEqual(lines.at(-1), { level: 'warn', msg: full, reason: 'no room' }, 'it begins again');
});

test('while it goes on it is logged once a minute, with the number of failures since', async () => {
  const { lines, failures } = noted(1000);
  let failed = 0;
  await until('it is logged again', async () => {
    failures.failed(full);
    failed += 1;
    return lines.length > 1;
  });
  assert.deepEqual(lines[1], { level: 'warn', msg: full, again: failed - 1 });
});

test('reasons that last are over together, by what was sent after they began', async () => {
  const { lines, failures } = noted(10);
  const sentMs = performance.now();
  await sleep(5);
  failures.failed('away', { lasts: true });
  failures.failed('shut out', { lasts: true });
  await sleep(100);
  failures.over(['away', 'shut out'], 'back', sentMs);
  assert.equal(lines.length, 2, 'no time ends them');
  failures.over(['away', 'shut out'], 'back', performance.now());
  failures.over(['away', 'shut out'], 'back', performance.now());
  assert.deepEqual(
    lines.slice(2).map(({ level, msg }) => [level, msg]),
    [['info', 'back']],
  );
});

test('of very many reasons the oldest are forgotten', async () => {
  const { lines, failures } = noted(50);
  for (let each = 0; each < 150; each += 1) failures.failed(`reason ${each}`);
  await until('100 are over', async () => lines.length >= 250);
  await sleep(100);
  assert.equal(lines.length, 250);
  assert.equal(lines[150]?.msg, 'Nothing failed for this reason for a minute: reason 50');
});
