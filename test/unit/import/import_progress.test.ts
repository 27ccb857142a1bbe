import assert from 'node:assert/strict';
import { test } from 'node:test';
import { progressBar, showImport } from '../../../src/manage/import_command.ts';

test('the bar fits the terminal', () => {
  assert.equal(progressBar('allocations', 0, 200, 80), `allocations [>${' '.repeat(39)}]   0% 0 of 200`);
  assert.equal(
    progressBar('allocations', 100, 200, 80),
    `allocations [${'='.repeat(20)}>${' '.repeat(19)}]  50% 100 of 200`,
  );
  assert.equal(progressBar('allocations', 199, 200, 40), 'allocations [========>]  99% 199 of 200');
  assert.equal(progressBar('allocations', 199, 200, 20), 'allocations 199 of ');
  for (let width = 0; width < 120; width += 1) {
    assert.ok(progressBar('resource_provider_aggregates', 65_000, 100_000, width).length <= width);
  }
});

test('on a terminal the bar is redrawn, and finished tables stay', () => {
  const written: string[] = [];
  const { note, progress } = showImport({ isTTY: true, columns: 40, write: (text) => written.push(text) });
  progress('users', 0, 2);
  progress('users', 2, 2);
  note('Done.');
  assert.deepEqual(written, [
    '\r\x1b[2Kusers [>                  ]   0% 0 of 2',
    '\r\x1b[2Kusers: 2 rows\n',
    '\r\x1b[2KDone.\n',
  ]);
});

test('elsewhere there is a line for each table, and one every ten seconds', () => {
  let ms = 0;
  let written = '';
  const { progress } = showImport(
    {
      write: (text) => {
        written += text;
      },
    },
    () => ms,
  );
  progress('projects', 0, 0);
  progress('users', 0, 1);
  progress('users', 1, 1);
  for (let done = 0; done <= 50; done += 10) {
    ms += 4000;
    progress('allocations', done, 50);
  }
  assert.equal(written, 'users: 1 row\nallocations: 20 of 50 rows\nallocations: 50 rows\n');
});
