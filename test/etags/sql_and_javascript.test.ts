/** Migration 004 computes in SQL the same text, and so the same tag, as src/placement/entity_tag.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { inventoryTag, nameTag } from '../../src/placement/entity_tag.ts';
import { engines, runsOn, withFreshDatabase } from '../support/engines.ts';

async function withDatabase(engine: (typeof engines)[number], use: (database: Database) => Promise<void>) {
  await withFreshDatabase(engine, async ({ settings }) => {
    const database = await openDatabase(settings);
    try {
      await use(database);
    } finally {
      await database.close();
    }
  });
}

const bits = fc
  .bigInt({ min: 0n, max: 2n ** 64n - 1n })
  .map((value) => new Float64Array(BigUint64Array.of(value).buffer)[0] ?? 0);
const ratio = fc
  .oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    bits.filter(Number.isFinite),
    fc
      .tuple(fc.integer(), fc.integer({ min: -30, max: 30 }))
      .map(([digits, exponent]) => Number(`${digits}e${exponent}`)),
    fc.constantFrom(
      0,
      -0,
      1,
      16.3,
      1e-6,
      9.99e-7,
      1e-7,
      1e15,
      1e16,
      2 ** 53,
      2 ** 60,
      1e20,
      1e21,
      1.5e21,
      1e22,
      3.40282e38,
    ),
  )
  .filter((value) => Math.abs(value) < 1e300);

for (const engine of engines) {
  test(`SQL and JavaScript write numbers alike on ${engine}`, async () => {
    await withDatabase(engine, async ({ kysely }) => {
      await fc.assert(
        fc.asyncProperty(fc.array(ratio, { minLength: 50, maxLength: 200 }), async (values) => {
          const { rows } = await sql<{ text: string }>`
            select etag_number(value) as text from unnest(${values}::float8[]) with ordinality as v (value, place) order by place`.execute(
            kysely,
          );
          assert.deepEqual(
            rows.map(({ text }) => text),
            values.map((value) => JSON.stringify(value)),
          );
        }),
        { numRuns: 20 },
      );
    });
  });

  test(`SQL and JavaScript write texts and inventories alike on ${engine}`, async () => {
    await withDatabase(engine, async ({ kysely }) => {
      const name = fc.string({ unit: 'binary' }).filter((text) => text.isWellFormed() && !text.includes('\0'));
      const amount = fc.integer({ min: 0, max: 2_147_483_647 });
      await fc.assert(
        fc.asyncProperty(name, amount, amount, ratio, async (text, total, reserved, allocationRatio) => {
          const fields = { total, reserved, minUnit: 1, maxUnit: total, stepSize: 3, allocationRatio };
          const { rows } = await sql<{ name: string; inventory: string }>`
            select etag_name(${text}) as name, etag_of(etag_inventory(i)) as inventory
            from jsonb_populate_record(null::inventories, ${JSON.stringify({
              total,
              reserved,
              min_unit: 1,
              max_unit: total,
              step_size: 3,
              allocation_ratio: allocationRatio,
            })}::jsonb) as i`.execute(kysely);
          assert.deepEqual(rows, [{ name: nameTag(text), inventory: inventoryTag(fields) }]);
        }),
        { numRuns: runsOn(engine, 100) },
      );
    });
  });
}
