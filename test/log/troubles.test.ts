/** What many requests meet has a line when it begins, one a minute while it goes on, and one when it is over. */
import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { openTroubles } from '../../src/log/troubles.ts';
import { until } from '../support/until.ts';

/** @param minuteMs what counts as a minute */
function noted(minuteMs: number) {
  const lines: Readonly<Record<string, unknown>>[] = [];
  const log = new Writable({ write: (chunk, _, done) => done(void lines.push(JSON.parse(String(chunk)))) });
  const logger = pino({ base: null, timestamp: false, formatters: { level: (level) => ({ level }) } }, log);
  return { lines, troubles: openTroubles(logger, minuteMs) };
}

const full = 'The disk is full: writes are answered 503';
const name = 'The disk is full';

test('a trouble is logged when it begins, and when nothing has met it for a minute, with how often it was met', async () => {
  const { lines, troubles } = noted(50);
  for (const reason of ['no room', 'no space', 'no room']) troubles.met(full, { name, reason });
  assert.deepEqual(lines.splice(0), [{ level: 'warn', msg: full, reason: 'no room' }]);
  await until('it is over', async () => lines.length > 0);
  const [{ seconds, ...end } = {}] = lines.splice(0);
  assert.deepEqual(end, { level: 'info', msg: 'For a minute nothing met this: The disk is full', failures: 3 });
  assert.ok(typeof seconds === 'number' && seconds < 60);
  await sleep(100);
  assert.equal(lines.length, 0);
  troubles.met(full, { name, reason: 'no room' });
  assert.deepEqual(lines.at(-1), { level: 'warn', msg: full, reason: 'no room' }, 'it begins again');
});

test('while it goes on it is logged once a minute, with how often it was met since', async () => {
  const { lines, troubles } = noted(1000);
  let met = 0;
  await until('it is logged again', async () => {
    troubles.met(full);
    met += 1;
    return lines.length > 1;
  });
  assert.deepEqual(lines[1], { level: 'warn', msg: full, again: met - 1 });
});

test('troubles that last are over together, by what was asked after they began', async () => {
  const { lines, troubles } = noted(10);
  const askedMs = performance.now();
  await sleep(5);
  troubles.met('away', { lasts: true });
  troubles.met('shut out', { lasts: true });
  await sleep(100);
  troubles.over(['away', 'shut out'], 'back', askedMs);
  assert.equal(lines.length, 2, 'no time ends them');
  troubles.over(['away', 'shut out'], 'back', performance.now());
  troubles.over(['away', 'shut out'], 'back', performance.now());
  assert.deepEqual(
    lines.slice(2).map(({ level, msg }) => [level, msg]),
    [['info', 'back']],
  );
});

test('of very many troubles the oldest are forgotten', async () => {
  const { lines, troubles } = noted(50);
  for (let each = 0; each < 150; each += 1) troubles.met(`trouble ${each}`);
  await until('100 are over', async () => lines.length >= 250);
  await sleep(100);
  assert.equal(lines.length, 250);
  assert.equal(lines[150]?.msg, 'For a minute nothing met this: trouble 50');
});
