/** Which statements of a transaction are logged as slow, and with which time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '../../db/engine/connect.ts';
import { withEmptyDatabase } from '../support/engines.ts';

test('of a transaction whose statement failed, neither later statements nor the end are logged', async () => {
  await withEmptyDatabase(async (url) => {
    const logged: string[] = [];
    const database = await openDatabase({
      connection: url,
      maxPoolSize: 2,
      onStatement: (text) => void logged.push(text),
    });
    try {
      const work = [sql`select pg_sleep(0.01)`, sql`select 1 / (random() * 0)::integer`, sql`select 3`];
      await assert.rejects(database.transaction(work), /division by zero/);
      assert.deepEqual(
        logged.filter((text) => !/^begin|^set /.test(text)),
        ['select pg_sleep(0.01)', 'select 1 / (random() * 0)::integer'],
      );
      logged.length = 0;
      await database.transaction([sql`select 4`, sql`select 5`]);
      assert.ok(logged.includes('select 5') && logged.includes('commit'), logged.join());
    } finally {
      await database.close();
    }
  });
});

test('a statement of a transaction is logged without the time of those before it, and so is the commit', async () => {
  await withEmptyDatabase(async (url) => {
    const took = new Map<string, number>();
    const database = await openDatabase({
      connection: url,
      maxPoolSize: 1,
      onStatement: (text, ms) => void took.set(text, ms),
    });
    try {
      await database.transaction([sql`select 6`, sql`select pg_sleep(1)`, sql`select 7`]);
      const slow = [...took].filter(([, ms]) => ms >= 500).map(([text]) => text);
      assert.deepEqual(slow, ['select pg_sleep(1)']);
      const ms = took.get('select pg_sleep(1)') ?? 0;
      assert.ok(ms >= 950, `${ms}`);
    } finally {
      await database.close();
    }
  });
});
