import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createUuidOrder } from '../../src/fleet/index/uuid_order.ts';

test('UUIDs come in order from after any text, whatever was added and removed before', () => {
  const uuid = fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz');
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
