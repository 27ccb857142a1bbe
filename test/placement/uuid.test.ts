import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { isUuidLike, normalUuid } from '../../src/placement/uuid.ts';
import table from './uuid.json' with { type: 'json' };

/* The table has the results of is_uuid_like of oslo.utils and str(uuid.UUID(...)) of Python for these texts. */
suite('UUIDs are recognised and normalised as upstream does', () => {
  for (const { value, normal } of table) {
    test(JSON.stringify(value), () => {
      assert.equal(isUuidLike(value), normal !== null);
      if (normal !== null) assert.equal(normalUuid(value), normal);
    });
  }
});
