import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rowsAfter, upTo } from '../../../src/manage/import/read_pages.ts';

test('rows after a key and up to it are compared column by column', () => {
  assert.deepEqual(rowsAfter(['id'], undefined), { condition: 'true', values: [] });
  assert.deepEqual(rowsAfter(['id'], [7]), { condition: 't.id > ?', values: [7] });
  assert.deepEqual(upTo(['id'], [7]), { condition: 't.id <= ?', values: [7] });
  assert.deepEqual(rowsAfter(['a', 'b'], [7, 8]), {
    condition: '(t.a > ? or (t.a = ? and t.b > ?))',
    values: [7, 7, 8],
  });
  assert.deepEqual(upTo(['a', 'b'], [7, 8]), { condition: '(t.a < ? or (t.a = ? and t.b <= ?))', values: [7, 7, 8] });
});
