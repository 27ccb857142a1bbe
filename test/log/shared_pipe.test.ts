/** The workers of a service write to the same standard error. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

test('lines of two processes that share a pipe are complete, also with a slow reader', async () => {
  const writer = `'${process.execPath}' '${path.join(import.meta.dirname, 'log_writer.ts')}'`;
  const { stdout } = await promisify(execFile)(
    'sh',
    ['-c', `{ ${writer} 1 & ${writer} 2 & wait; } 2>&1 | { sleep 1; cat; }`],
    { maxBuffer: 64 * 1024 * 1024 },
  );
  const entries = stdout.trimEnd().split('\n');
  assert.equal(entries.length, 6000);
  for (const entry of entries) assert.equal(JSON.parse(entry).msg, 'a line', entry);
});
