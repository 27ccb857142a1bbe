/** Migrations beside transactions of other programs that stay open, such as pg_dump: how long reads and writes wait behind its locks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { openDatabase } from '../../db/engine/connect.ts';
import { migrationNames } from '../../db/schema/executed_migrations.ts';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { migrations } from '../../db/schema/migrations.ts';
import { upstreamSchemas } from '../manage/upstream_schema.ts';
import { withEmptyDatabase } from '../support/engines.ts';

/**
 * How long the other transactions stay open, in milliseconds. `HELD_MS=30000 npm test -- test/races/schema_changes` shows how long other
 * requests wait beside a dump that takes long.
 */
const openMs = Number(process.env.HELD_MS ?? 1_500);
/** How long others may wait for a lock. A migration holds or wants it for some 0.1 s; the machine may be slow. */
const waitMs = 1_000;

/**
 * Runs work while a reader and a writer have transactions open, and others read and write each table for a moment each.
 *
 * @param waits whether the work has to wait for those transactions
 * @returns whether the work waited for those transactions, and the longest time that one of the others took
 */
async function besideOthers(
  url: string,
  waits: boolean,
  work: () => Promise<unknown>,
): Promise<{ readonly didWait: boolean; readonly longestMs: number }> {
  const clients: pg.Client[] = [];
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: url });
    clients.push(client);
    await client.connect();
    return client;
  };
  try {
    const [reader, writer] = [await connect(), await connect()];
    const { rows } = await reader.query<{ name: string }>(`select relname as name from pg_class
      where relkind = 'r' and relnamespace = 'public'::regnamespace and relname !~ '^kysely' order by 1`);
    const names = rows.map(({ name }) => name);
    const tables = names.join(', ');
    // As pg_dump, which has a snapshot as well.
    await reader.query(`begin isolation level repeatable read; select 1; lock table ${tables} in access share mode`);
    await writer.query(`begin; lock table ${tables} in row exclusive mode`);
    let isOver = false;
    let longestMs = 0;
    /** Each table is used by a client of its own, since a lock on one of them does not stop the others. */
    const use = async (name: string): Promise<void> => {
      const client = await connect();
      await client.query(`set lock_timeout = ${waitMs}`);
      for (let isLast = false; !isLast; ) {
        isLast = isOver;
        for (const statement of [`select from ${name} limit 1`, `delete from ${name} where false`]) {
          const startedMs = performance.now();
          await client.query(statement);
          longestMs = Math.max(longestMs, performance.now() - startedMs);
        }
        await sleep(20);
      }
    };
    const others = Promise.all(names.map(use));
    others.catch(() => {}); // it is awaited below
    let isDone = false;
    const done = work().finally(() => {
      isDone = true;
    });
    done.catch(() => {});
    // Work that need not wait ends meanwhile, however slow the machine is.
    for (const endMs = performance.now() + (waits ? openMs : 60_000); performance.now() < endMs && !isDone; )
      await sleep(10);
    const didWait = !isDone;
    for (const client of [reader, writer]) await client.query('commit');
    try {
      await done;
    } finally {
      isOver = true;
      await others;
    }
    return { didWait, longestMs };
  } finally {
    for (const client of clients) await client.end();
  }
}

/** Printed for measurements. */
const tell = (what: string, longestMs: number) =>
  console.log(`${what}: others waited for ${longestMs.toFixed(0)} ms at most`);

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
  '008_consumer_terms': 'create index consumers_type_uuid_idx on consumers (consumer_type_id, uuid)',
};
/** Which migrations have to wait for the transactions of others. */
const waiting = /^(002|004|005|006|007|008|010|012|013|014|015|019|020|021)/;

for (const [index, name] of migrationNames.entries()) {
  if (index === 0) continue; // below, on upstream's tables
  test(`reads and writes wait only briefly for the locks of migration ${name} beside open transactions`, async () => {
    await withEmptyDatabase(async (url) => {
      await migrate(url, index);
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query(earlier[name] ?? '');
      await client.end();
      let applied: readonly string[] = [];
      const { didWait, longestMs } = await besideOthers(url, waiting.test(name), async () => {
        applied = await migrate(url, index + 1);
      });
      tell(name, longestMs);
      assert.deepEqual(applied, [name]);
      assert.equal(didWait, waiting.test(name), 'it waits for those transactions, or needs not');
    });
  });
}

for (const [revision, schema] of Object.entries(upstreamSchemas)) {
  test(`reads and writes wait only briefly while a database of revision ${revision} is adopted beside open transactions`, async () => {
    await withEmptyDatabase(async (url) => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query(schema);
      await client.end();
      let applied: readonly string[] = [];
      const { didWait, longestMs } = await besideOthers(url, true, async () => {
        applied = await migrate(url, migrationNames.length);
      });
      tell(`adoption of ${revision}`, longestMs);
      assert.equal(didWait, true);
      assert.deepEqual(applied, migrationNames);
    });
  });
}

test('an adoption that was interrupted while it built an index continues', async () => {
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
      await client.query('reset statement_timeout');
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

test('db sync without a new migration waits for no open transaction', async () => {
  await withEmptyDatabase(async (url) => {
    await migrate(url, migrationNames.length);
    const { didWait } = await besideOthers(url, false, async () => {
      assert.deepEqual(await migrate(url, migrationNames.length), []);
    });
    assert.equal(didWait, false);
  });
});
