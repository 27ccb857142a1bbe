import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type * as v from 'valibot';
import { putBodies } from '../../src/api/allocations/bodies.ts';
import { inventoryRecordEntries } from '../../src/api/resource_providers/inventory_bodies.ts';
import { ApiError } from '../../src/request/errors.ts';
import { object } from '../../src/rest/json_schema.ts';
import { checkValue } from '../../src/rest/schema_check.ts';
import allocations10 from './allocations_1_0.json' with { type: 'json' };
import allocations138 from './allocations_1_38.json' with { type: 'json' };
import inventory from './inventory.json' with { type: 'json' };

/*
 * The tables have the messages of Python's jsonschema 4.10 about these bodies, with upstream's schemas: the sentence,
 * the rule that failed, and the place in the body. Null if there was no message.
 */

type Row = {
  readonly body: unknown;
  readonly result: { readonly message: string; readonly keyword: string; readonly instance: string } | null;
};

function complaint(schema: v.GenericSchema, body: unknown): unknown {
  try {
    checkValue(body, schema);
    return null;
  } catch (error) {
    assert.ok(error instanceof ApiError && error.status === 400, String(error));
    const parts = /^JSON does not validate: (.*)\n\nFailed validating '(\w+)' in .*\n\nOn instance(.*):\n/s.exec(
      error.message,
    );
    assert.ok(parts, error.message);
    const [, message, keyword, instance] = parts;
    return { message, keyword, instance };
  }
}

const schemaSince = (version: number): v.GenericSchema => {
  const found = putBodies.find(({ since }) => since === version);
  assert.ok(found);
  return found.schema;
};

const tables: readonly (readonly [what: string, schema: v.GenericSchema, rows: readonly Row[]])[] = [
  ['PUT /allocations at 1.38', schemaSince(1038), allocations138],
  ['PUT /allocations at 1.0', schemaSince(1000), allocations10],
  ['an inventory', object(inventoryRecordEntries), inventory],
];

for (const [what, schema, rows] of tables) {
  suite(`complaints about ${what} are those of upstream`, () => {
    for (const { body, result } of rows) {
      test(JSON.stringify(body).slice(0, 100), () => assert.deepEqual(complaint(schema, body), result));
    }
  });
}
