/** Requests from a grammar, with mutations, harm nothing; `node test/hostile/random_input.ts` sends more of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seedFor } from '../races/random.ts';
import { barrage } from './barrage.ts';

test('hostile requests get no 500, take little time, and leave the memory as it is', async (t) => {
  const { statuses, found, log, memory } = await barrage(seedFor(t), { requests: 6000, measureEvery: 1500 });
  t.diagnostic(`${JSON.stringify([...statuses])}, ${JSON.stringify(memory)}`);
  assert.deepEqual(
    found.map(({ what, bytes }) => `${what}: ${JSON.stringify(bytes.toString('latin1'))}`),
    [],
  );
  assert.equal(log, '');
  assert.ok((statuses.get(200) ?? 0) > 50, 'some of them are right');
  const [early, ...later] = memory.map(({ heap, external }) => heap + external);
  // Without garbage, of which a loaded machine collects less, the memory of the process differs by a few MiB.
  assert.ok(early !== undefined && later.length > 0);
  assert.ok(
    later.every((each) => each < early + 16),
    JSON.stringify(memory),
  );
});
