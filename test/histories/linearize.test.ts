/** The search for an order that explains a history, with a register of one number. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Interval, linearize, type Specification } from './linearize.ts';

type Step = Interval & { readonly write?: number; readonly read?: number };

const register: Specification<number, Step> = {
  initial: 0,
  keyOf: String,
  after: (state, { write, read }) => (write !== undefined ? [write] : read === state ? [state] : []),
};
const isExplained = (...steps: readonly Step[]) => linearize(register, steps).isExplained;

test('a read sees what was written before it began', () => {
  const write = { write: 1, invoked: 0, completed: 1 };
  assert.ok(isExplained(write, { read: 1, invoked: 2, completed: 3 }));
  assert.ok(!isExplained(write, { read: 0, invoked: 2, completed: 3 }));
});

test('a read during a write sees either state, but later reads go forward', () => {
  const write = { write: 1, invoked: 0, completed: 9 };
  const read = (value: number, at: number) => ({ read: value, invoked: at, completed: at + 1 });
  assert.ok(isExplained(write, read(0, 1), read(1, 3)));
  assert.ok(!isExplained(write, read(1, 1), read(0, 3)));
});

test('a write without an answer may take effect late or never, but not before it was sent', () => {
  const cut = { write: 1, invoked: 2, completed: undefined };
  const read = (value: number, at: number) => ({ read: value, invoked: at, completed: at + 1 });
  assert.ok(isExplained(cut, read(0, 3)));
  assert.ok(isExplained(cut, read(0, 3), read(0, 5), read(1, 7)));
  assert.ok(!isExplained(cut, read(1, 0)));
  assert.ok(!isExplained(cut, read(1, 3), read(0, 5)));
});

test('a history that cannot be explained says where it stops', () => {
  const wrong = { read: 7, invoked: 2, completed: 3 };
  const verdict = linearize(register, [{ write: 1, invoked: 0, completed: 1 }, wrong]);
  assert.ok(verdict.isExplained === false);
  assert.equal(verdict.state, 1);
  assert.deepEqual(verdict.stuck, [wrong]);
});

test('a search that takes too long is ended', () => {
  assert.equal(linearize(register, [{ write: 1, invoked: 0, completed: 1 }], 0).isExplained, undefined);
});

test('linearize answers what trying all orders answers', () => {
  const step = fc.record({
    isWrite: fc.boolean(),
    value: fc.nat(2),
    at: fc.nat(9),
    length: fc.integer({ min: 1, max: 6 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 6 }), fc.nat(6), (made, cut) => {
      // No two events have one time.
      const steps = made.map(({ isWrite, value, at, length }, index): Step => {
        const isCut = isWrite && index < cut - 4;
        const interval = { invoked: at + index / 100, completed: isCut ? undefined : at + length + (index + 50) / 100 };
        return { ...interval, ...(isWrite ? { write: value } : { read: value }) };
      });
      assert.equal(isExplained(...steps), someOrderExplains(steps, 0));
    }),
    { numRuns: 2000 },
  );
});

/** Checks each order. */
function someOrderExplains(left: readonly Step[], state: number): boolean {
  if (left.every(({ completed }) => completed === undefined)) return true;
  return left.some((step) => {
    const others = left.filter((each) => each !== step);
    if (others.some(({ completed }) => completed !== undefined && completed < step.invoked)) return false;
    return register.after(state, step, 0).some((next) => someOrderExplains(others, next));
  });
}
