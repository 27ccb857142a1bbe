/** Requests from a grammar, with mutations, harm nothing; `node test/hostile/random_input.ts` sends more of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seedFor } from '../races/random.ts';
import { barrage, grown } from './barrage.ts';

test('hostile requests get no 500, take little time, and leave the memory as it is', async (t) => {
  const { statuses, found, log, memory } = await barrage(seedFor(t), { requests: 6000, measureEvery: 1500 });
  t.diagnostic(`${JSON.stringify([...statuses])}, ${JSON.stringify(memory)}`);
  assert.deepEqual(
    found.map(({ what, bytes }) => `${what}: ${JSON.stringify(bytes.toString('latin1'))}`),
    [],
  );
  assert.equal(log, '');
  assert.ok((statuses.get(200) ?? 0) > 50, 'some of them are right');
  assert.ok(memory.length > 1);
  assert.deepEqual(grown(memory), []);
});
