import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { sha1 } from '../../src/client/derived_uuids.ts';

test('SHA-1 of any bytes is that of Node.js', () => {
  const same = (bytes: Uint8Array) =>
    assert.equal(Buffer.from(sha1(bytes)).toString('hex'), createHash('sha1').update(bytes).digest('hex'));
  for (const length of [0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 128, 1000]) same(new Uint8Array(length).fill(0xa5));
  fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), same));
});
