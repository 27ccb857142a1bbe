import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '../../db/engine/connect.ts';
import { arrayText } from '../../db/engine/connection.ts';
import { engines, withFreshDatabase } from '../support/engines.ts';

/** Lists that the service writes itself, and lists that it leaves to node-postgres. */
const lists = {
  integer: [
    [1, -2147483648, 0],
    [1, null, 2],
  ],
  float8: [[0.1, 1e21, -1.5e-7, Number.NaN, Number.POSITIVE_INFINITY]],
  text: [['a', '', ' b ', 'NULL', 'ä,{}', "it's\n"], ['a', null], ['a "quoted"'], ['back\\slash'], []],
  boolean: [[true, false, null]],
};

for (const engine of engines) {
  test(`a list comes to the database as it is, on ${engine}`, async () => {
    await withFreshDatabase(engine, async ({ settings }) => {
      const database = await openDatabase(settings);
      try {
        for (const [type, some] of Object.entries(lists)) {
          for (const list of some) {
            const { rows } = await sql`select ${list}::${sql.raw(type)}[] as list`.execute(database.kysely);
            assert.deepEqual(rows, [{ list }]);
          }
        }
      } finally {
        await database.close();
      }
    });
  });
}

test('only lists whose elements need no escape are written without node-postgres', () => {
  assert.equal(arrayText([1, 2]), '{1,2}');
  assert.equal(arrayText(['a', 'b']), '{"a","b"}');
  for (const list of [[], [1, 'a'], ['a', null], ['"'], ['\\'], [true]]) assert.equal(arrayText(list), list);
});
