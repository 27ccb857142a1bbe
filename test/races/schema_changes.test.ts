/** Migrations beside transactions of other programs that stay open, such as pg_dump: nobody waits behind the locks of a migration. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { openDatabase } from '../../db/engine/connect.ts';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { migrationNames } from '../../db/schema/migration_names.ts';
import { migrations } from '../../db/schema/migrations.ts';
import { withEmptyDatabase } from '../engines.ts';
import { upstreamSchemas } from '../manage/upstream_schema.ts';

/** How long the other transactions stay open. */
const openMs = 1_500;
/** How long others may wait for a lock. A migration holds or wants it for some 0.1 s; the machine may be slow. */
const waitMs = 1_000;

/** Runs work while a reader and a writer have transactions open, and others read and write for a moment each. */
async function besideOthers(url: string, work: () => Promise<unknown>): Promise<{ readonly didWait: boolean }> {
  const clients = ['reader', 'writer', 'others'].map(() => new pg.Client({ connectionString: url }));
  const [reader, writer, others] = clients;
  assert.ok(reader !== undefined && writer !== undefined && others !== undefined);
  try {
    for (const client of clients) await client.connect();
    const { rows } = await reader.query<{ name: string }>(`select relname as name from pg_class
      where relkind = 'r' and relnamespace = 'public'::regnamespace and relname !~ '^kysely' order by 1`);
    const names = rows.map(({ name }) => name);
    const tables = names.join(', ');
    // As pg_dump, which has a snapshot as well.
    await reader.query(`begin isolation level repeatable read; select 1; lock table ${tables} in access share mode`);
    await writer.query(`begin; lock table ${tables} in row exclusive mode`);
    await others.query(`set lock_timeout = ${waitMs}`);
    let isDone = false;
    const done = work().finally(() => {
      isDone = true;
    });
    done.catch(() => {});
    const useAll = async () => {
      for (const name of names) {
        await others.query(`select from ${name} limit 1`);
        await others.query(`delete from ${name} where false`);
      }
      await sleep(10);
    };
    for (const endMs = performance.now() + openMs; performance.now() < endMs && !isDone; ) await useAll();
    const didWait = !isDone;
    for (const client of [reader, writer]) await client.query('commit');
    while (!isDone) await useAll();
    await done;
    await useAll();
    return { didWait };
  } finally {
    for (const client of clients) await client.end();
  }
}

async function migrate(url: string, count: number): Promise<readonly string[]> {
  const database = await openDatabase({ connection: url, maxPoolSize: 1 });
  try {
    return await migrateToLatest(database, Object.fromEntries(Object.entries(migrations).slice(0, count)));
  } finally {
    await database.close();
  }
}

/** What makes a migration lock a table that it leaves alone in a database of the newest release. */
const earlier: Readonly<Record<string, string>> = {
  '012_no_consumer_indexes': 'create index consumers_type_uuid_idx on consumers (consumer_type_id, uuid)',
};
/** Which migrations have to wait for the transactions of others. */
const waiting = /^(002|004|005|007|010|011|012|013)/;

for (const [place, name] of migrationNames.entries()) {
  if (place === 0) continue; // below, on upstream's tables
  test(`nobody waits long for a lock while migration ${name} is made beside open transactions`, async () => {
    await withEmptyDatabase(async (url) => {
      await migrate(url, place);
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query(earlier[name] ?? '');
      await client.end();
      let applied: readonly string[] = [];
      const { didWait } = await besideOthers(url, async () => {
        applied = await migrate(url, place + 1);
      });
      assert.deepEqual(applied, [name]);
      assert.equal(didWait, waiting.test(name), 'it waits for those transactions, or needs not');
    });
  });
}

for (const [revision, schema] of Object.entries(upstreamSchemas)) {
  test(`nobody waits long for a lock while a database of revision ${revision} is adopted beside open transactions`, async () => {
    await withEmptyDatabase(async (url) => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query(schema);
      await client.end();
      let applied: readonly string[] = [];
      const { didWait } = await besideOthers(url, async () => {
        applied = await migrate(url, migrationNames.length);
      });
      assert.equal(didWait, true);
      assert.deepEqual(applied, migrationNames);
    });
  });
}

test('an adoption that was interrupted while it built an index goes on', async () => {
  await withEmptyDatabase(async (url) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      await client.query(upstreamSchemas.a082b8bb98d0 ?? '');
      await client.query('drop index consumers_consumer_type_id_idx');
      await client.query(`set statement_timeout = 200`);
      const other = new pg.Client({ connectionString: url });
      await other.connect();
      await other.query('begin; lock table consumers in row exclusive mode');
      const build = 'create index concurrently consumers_consumer_type_id_idx on consumers (consumer_type_id)';
      await assert.rejects(client.query(build), /statement timeout/);
      await other.end();
      await migrate(url, migrationNames.length);
      const whole = await client.query(`select from pg_index where indisvalid
        and indexrelid = 'consumers_consumer_type_id_idx'::regclass`);
      assert.equal(whole.rowCount, 1);
    } finally {
      await client.end();
    }
  });
});

test('where everything is there, db sync waits for nothing', async () => {
  await withEmptyDatabase(async (url) => {
    await migrate(url, migrationNames.length);
    const { didWait } = await besideOthers(url, async () => {
      assert.deepEqual(await migrate(url, migrationNames.length), []);
    });
    assert.equal(didWait, false);
  });
});
