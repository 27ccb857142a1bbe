import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forEach } from '../../src/client/for_each.ts';
import { pause } from '../../src/client/send.ts';

test('after a failure no further call begins, and what is under way is finished', async () => {
  const begun: number[] = [];
  const done: number[] = [];
  const items = Array.from({ length: 100 }, (_, index) => index);
  const call = async (item: number) => {
    begun.push(item);
    await pause(item === 1 ? 0 : 20);
    if (item === 1) throw new Error('no');
    done.push(item);
    return -item;
  };
  await assert.rejects(forEach(items, call, 4), /^Error: no$/);
  assert.deepEqual(
    [begun, done],
    [
      [0, 1, 2, 3],
      [0, 2, 3],
    ],
  );
  assert.deepEqual(await forEach([5, 3, 4], call, 2), [-5, -3, -4]);
});
