import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { capacity, exactCapacity, fitsUnits, hasRoomFor, inventoryDefaults } from '../../src/placement/inventory.ts';

const whole = { total: 10, ...inventoryDefaults };

const anyInventory = fc.record({
  total: fc.integer({ min: 1, max: 1000 }),
  reserved: fc.integer({ min: 0, max: 1200 }),
  minUnit: fc.integer({ min: 1, max: 20 }),
  maxUnit: fc.integer({ min: 1, max: 500 }),
  stepSize: fc.integer({ min: 1, max: 20 }),
  allocationRatio: fc.constantFrom(0.1, 0.5, 0.9, 1, 1.5, 16),
});
const anyUsed = fc.integer({ min: 0, max: 1000 });

suite('capacity', () => {
  test('is the amount that is not reserved, times the ratio, rounded towards zero', () => {
    assert.equal(capacity({ ...whole, total: 3, allocationRatio: 0.9 }), 2);
    assert.equal(capacity({ ...whole, total: 10, reserved: 4, allocationRatio: 1.5 }), 9);
    assert.equal(capacity({ ...whole, total: 1, allocationRatio: 0.5 }), 0);
    assert.equal(capacity({ ...whole, total: 1, reserved: 2, allocationRatio: 0.5 }), -0);
    assert.equal(capacity({ ...whole, total: 1, reserved: 4 }), -3);
    // Binary fractions, as in Python: 0.7 * 10 is 7, and 0.29 * 100 is 28.999999999999996.
    assert.equal(capacity({ ...whole, allocationRatio: 0.7 }), 7);
    assert.equal(capacity({ ...whole, total: 100, allocationRatio: 0.29 }), 28);
  });

  test('has room for its last unit, but not for one more', () => {
    const free = { fields: whole, used: 6 };
    assert.ok(hasRoomFor(free, 4));
    assert.ok(!hasRoomFor(free, 5));
    assert.ok(!hasRoomFor({ fields: whole, used: 12 }, 1));
    const cut = { fields: { ...whole, total: 3, allocationRatio: 0.9 }, used: 0 };
    assert.ok(hasRoomFor(cut, 2));
    assert.ok(!hasRoomFor(cut, 3));
  });

  test('the shown capacity and the check of claims agree for every whole amount', () => {
    fc.assert(
      fc.property(anyInventory, anyUsed, fc.integer({ min: 1, max: 600 }), (fields, used, amount) => {
        const fits = amount >= fields.minUnit && amount <= fields.maxUnit && amount % fields.stepSize === 0;
        assert.equal(fitsUnits(fields, amount), fits);
        assert.equal(hasRoomFor({ fields, used }, amount), fits && used + amount <= capacity(fields));
        assert.equal(hasRoomFor({ fields, used }, amount), fits && used + amount <= exactCapacity(fields));
      }),
      { numRuns: 2000 },
    );
  });
});

suite('units', () => {
  const units = { ...whole, minUnit: 2, maxUnit: 8, stepSize: 3 };
  for (const [amount, fits] of [
    [1, false],
    [2, false],
    [3, true],
    [6, true],
    [8, false],
    [9, false],
  ] as const) {
    test(`${amount} of 2 to 8 in steps of 3: ${fits}`, () => assert.equal(fitsUnits(units, amount), fits));
  }

  test('steps count from zero, not from min_unit', () => {
    assert.ok(!fitsUnits({ ...whole, minUnit: 2, stepSize: 3 }, 5));
  });
});
