import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readDuration } from '../../src/cli/duration.ts';
import { readWait } from '../../src/cli/wait.ts';

test('a time has units from the largest on, and a number alone is of seconds', () => {
  const seconds = { '90': 90, '45s': 45, '30m': 1800, '8h': 28_800, '2d': 172_800, '1h30m': 5400, '1d2h3m4s': 93_784 };
  for (const [text, expected] of Object.entries(seconds)) assert.equal(readDuration(text), expected, text);
  // Seconds may come without their unit behind others, as people say it.
  assert.equal(readDuration('1m30'), 90);
  for (const text of ['', '0', '0h', '-1', '1.5h', '1e3', ' 5', '5 m', 'm', '30m1h', '1h1h', '3651d', '9999999999']) {
    assert.throws(() => readDuration(text), /It is a time from 1 s to 3650d, such as 45s, 30m, 8h, 2d or 1h30m/, text);
  }
});

test('a command refuses to wait for longer than a timer can', () => {
  assert.equal(readWait('24d'), 24 * 86_400);
  for (const text of ['24d1s', '25d', '3650d'])
    assert.throws(() => readWait(text), /A command waits for 24d at most/, text);
  assert.throws(() => readWait('0'), /It is a time from 1 s/);
});
