/** The embedded database computes in the process of the service: statements one after the other leave time for everything else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '../../db/engine/connect.ts';
import { withFreshDatabase } from '../support/engines.ts';

test('timers and sockets have their turns while one statement follows another', async () => {
  await withFreshDatabase('embedded', async ({ settings }) => {
    const database = await openDatabase(settings);
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 1);
    try {
      for (let statement = 0; statement < 2_000; statement += 1) await sql`select 1`.execute(database.kysely);
      assert.ok(turns > 3, `${turns} turns`);
    } finally {
      clearInterval(timer);
      await database.close();
    }
  });
});
