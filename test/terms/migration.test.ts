/** Migration 008, which changes the triggers of the table of consumers while other programs write to it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Migration } from 'kysely';
import pg from 'pg';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { migrationNames } from '../../db/schema/executed_migrations.ts';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { migrations } from '../../db/schema/migrations.ts';
import { postgresqlServer } from '../support/engines.ts';
import { createDatabase } from '../support/postgresql.ts';
import { unreleasedMigrations } from '../upgrades/unreleased/migrations.ts';

type World = { readonly database: Database; readonly early: pg.Client; readonly late: pg.Client };

/** The migrations before a name, and all up to it. */
const before = (name: string) => Object.fromEntries(Object.entries(migrations).filter(([other]) => other < name));
/** Those of development, in which a trigger for each row of consumers was replaced by one for each statement. */
const unreleasedBefore = (name: string) => ({
  ...before('006'),
  ...Object.fromEntries(Object.entries(unreleasedMigrations).filter(([other]) => other < name)),
});
const upTo = (name: string) => Object.fromEntries(Object.entries(migrations).filter(([other]) => other <= name));

/** A database to which only these migrations were applied, and two connections of other programs. */
async function withSchema(
  made: Readonly<Record<string, Migration>>,
  use: (world: World) => Promise<void>,
): Promise<void> {
  const { url, drop } = await createDatabase(await postgresqlServer());
  const database = await openDatabase({ connection: url, maxPoolSize: 1 });
  const [early, late] = [new pg.Client({ connectionString: url }), new pg.Client({ connectionString: url })];
  try {
    await migrateToLatest(database, made);
    for (const writer of [early, late]) await writer.connect();
    await early.query(
      `insert into projects (id, external_id) values (1, 'p'); insert into users (id, external_id) values (1, 'u')`,
    );
    await use({ database, early, late });
  } finally {
    await Promise.all([early.end(), late.end()]);
    await database.close();
    await drop();
  }
}

const insertion = (uuid: string): string =>
  `insert into consumers (uuid, project_id, user_id) values ('${uuid}', 1, 1)`;

const name = '008_consumer_terms';

test(`writers wait for the triggers of ${name} for short times only, however long a transaction is open`, async () => {
  await withSchema(before(name), async ({ database, early, late }) => {
    await early.query('begin');
    await early.query(insertion('early'));
    let isDone = false;
    const migrated = migrateToLatest(database, upTo(name)).finally(() => {
      isDone = true;
    });
    // Consumers are written while the migration repeats its attempts.
    await late.query(`set statement_timeout = '5s'`);
    for (let number = 0; number < 20; number += 1) await late.query(insertion(`l${number}`));
    assert.equal(isDone, false, 'it waits for the open transaction');
    await early.query('commit');
    assert.deepEqual(await migrated, [name]);
    await late.query(`insert into consumer_terms select id, generation, now() from consumers`);
    const count = async (): Promise<unknown> =>
      (await late.query('select count(*)::integer as count from consumer_terms')).rows[0].count;
    await late.query(`delete from consumers where uuid = 'l1'`);
    assert.equal(await count(), 20, 'the term is gone with its consumer');
    await late.query(`delete from consumers where uuid in ('l2', 'l3', 'l4')`);
    assert.equal(await count(), 17);
    await late.query(`delete from consumers where uuid = 'none'`);
    assert.equal(await count(), 17);
    await late.query('truncate consumers');
    assert.equal(await count(), 0);
  });
});

test('while the trigger of a half-way database is replaced, readers of consumers do not wait, and several processes may migrate', async () => {
  await withSchema(unreleasedBefore('013'), async ({ database, early, late }) => {
    const other = await openDatabase({ connection: databaseOf(late), maxPoolSize: 1 });
    try {
      await late.query(insertion('c'));
      await late.query('insert into consumer_terms select id, generation, now() from consumers');
      await early.query('begin');
      await early.query('select from consumers');
      const applied = await Promise.all([database, other].map((each) => migrateToLatest(each)));
      assert.deepEqual(applied.flat().toSorted(), migrationNames.slice(migrationNames.indexOf('006_changed_parts')));
      await early.query('commit');
      await late.query('delete from consumers');
      assert.equal((await late.query('select from consumer_terms')).rowCount, 0);
      assert.equal((await late.query(`select where to_regproc('term_gone') is null`)).rowCount, 1);
    } finally {
      await other.close();
    }
  });
});

const databaseOf = ({ host, port, database }: pg.Client): string => `postgresql://postgres@${host}:${port}/${database}`;
