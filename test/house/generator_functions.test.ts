/**
 * Where generator functions are made. V8 makes a hidden class for each one that is called, and keeps it, with all that it refers to,
 * until the whole heap is collected: created for each request they cost five times as much garbage collection as all the rest.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite, test } from 'node:test';

const source = path.join(import.meta.dirname, '..', '..', 'src');

/** Files whose inner generator functions are made once for a process, a fleet or a client, and not for each request. */
const madeOnce = [
  'client/changes.ts',
  'fleet/model/parts.ts',
  'fleet/model/postings.ts',
  'fleet/model/provider.ts',
  'fleet/model/tree_order.ts',
  'fleet/model/uuid_order.ts',
];

/** `function*` or a method `*name(` that is not at the top of its file. */
const innerGenerator = /^[ \t]+(?:\S.*\bfunction ?\*|(?:async )?function ?\*|(?:async )?\*[\w[][\w.\]]*\()/m;

suite('generator functions', () => {
  test('generator functions are at the top of their files, so that no request creates one', () => {
    const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
    const inner = files.filter((file) => innerGenerator.test(readFileSync(path.join(source, file), 'utf8')));
    assert.deepEqual(inner.toSorted(), madeOnce);
  });
});
