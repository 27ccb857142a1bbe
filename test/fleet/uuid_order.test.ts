import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createUuidOrder } from '../../src/fleet/model/uuid_order.ts';

test('UUIDs come in order from after any text, whatever was added and removed before', () => {
  const uuid = fc.constantFrom(...'abcdefgh'); // so few that one is often removed and added again
  const step = fc.oneof(
    fc.record({ what: fc.constant('add' as const), uuid }),
    fc.record({ what: fc.constant('remove' as const), uuid }),
    fc.record({ what: fc.constant('read' as const), uuid: fc.oneof(uuid, fc.constant('')) }),
  );
  let read = 0;
  fc.assert(
    fc.property(fc.uniqueArray(uuid), fc.array(step, { maxLength: 80 }), (first, steps) => {
      const present = new Map(first.map((each) => [each, each]));
      const order = createUuidOrder(present);
      for (const { what, uuid } of steps) {
        if (what === 'remove') present.delete(uuid);
        if (what === 'add' && !present.has(uuid)) {
          present.set(uuid, uuid);
          order.add(uuid);
        }
        if (what !== 'read') continue;
        read += 1;
        assert.deepEqual([...order.after(uuid)], [...present.keys()].filter((each) => each > uuid).sort());
      }
    }),
    { numRuns: 1000 },
  );
  assert.ok(read > 1000);
});

test('so many new UUIDs that all are sorted again come in order as well', () => {
  const present = new Map([['0', true]]);
  const order = createUuidOrder(present);
  assert.deepEqual([...order.after('')], ['0']);
  for (let number = 3000; number >= 1000; number -= 1) {
    present.set(`${number}`, true);
    order.add(`${number}`);
  }
  assert.deepEqual([...order.after('')], [...present.keys()].sort());
});
