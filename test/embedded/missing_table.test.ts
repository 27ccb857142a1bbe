import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '../../db/engine/connect.ts';
import { onlyRow } from '../../db/engine/only_row.ts';

test('after a statement on a table that does not exist, the one connection of the embedded database is used again', async () => {
  const database = await openDatabase({ embeddedPath: 'memory://' });
  try {
    for (const kysely of [database.kysely, database.unlimited]) {
      for (let time = 0; time < 2; time += 1) {
        await assert.rejects(sql`select from nowhere`.execute(kysely), /does not exist/);
        assert.deepEqual(await onlyRow(kysely, sql`select 1 as one`), { one: 1 });
      }
    }
  } finally {
    await database.close();
  }
});
