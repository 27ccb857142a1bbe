/** Connections have the settings that statements rely on, whatever the server, the database or the role have as defaults. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { suite, test } from 'node:test';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { onlyRow } from '../../db/engine/only_row.ts';
import { unwatchedTablesProblem } from '../../db/schema/watched_tables.ts';
import type { Tables } from '../../db/tables.ts';
import { engines, withFreshDatabase } from '../support/engines.ts';
import { hasPgbouncer, startPgbouncer } from '../support/pgbouncer.ts';
import { execute } from '../support/postgresql.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';

/** Defaults of a database that statements cannot work with, and what they need. */
const settings: Readonly<Record<string, readonly [unsuitable: string, needed: string]>> = {
  default_transaction_isolation: ['repeatable read', 'read committed'],
  transaction_isolation: ['', 'read committed'],
  lock_timeout: ['1ms', '0'],
  idle_session_timeout: ['1min', '0'],
  jit: ['on', 'off'],
  row_security: ['on', 'off'],
  datestyle: ['SQL, DMY', 'ISO, DMY'],
  extra_float_digits: ['-5', '1'],
  standard_conforming_strings: ['off', 'on'],
  array_nulls: ['off', 'on'],
};

async function setUnsuitable(connection: string, names: readonly string[] = Object.keys(settings)): Promise<void> {
  const database = new URL(connection).pathname.slice(1);
  for (const name of names) {
    const [unsuitable] = settings[name] ?? [''];
    if (unsuitable !== '') await execute(connection, `alter database ${database} set ${name} = '${unsuitable}'`);
  }
}

type Row = Readonly<Record<string, string>>;
const isolation = sql<Row>`select current_setting('transaction_isolation') as isolation`;
const shown = (names: readonly string[]): RawBuilder<Row> =>
  sql<Row>`select ${sql.join(names.map((name) => sql`current_setting(${sql.lit(name)}) as ${sql.id(name)}`))}`;

/** What a statement shows in each way in which the service sends statements. */
async function ways(database: Database, statement: RawBuilder<Row>): Promise<Readonly<Record<string, Row>>> {
  const { kysely, unlimited } = database;
  const inTransaction = (on: Kysely<Tables>) => on.transaction().execute((trx) => onlyRow(trx, statement));
  const last = (results: readonly (readonly Row[])[]): Row => results.at(-1)?.[0] ?? {};
  return {
    'a statement': await onlyRow(kysely, statement),
    'a transaction of one statement': last(await database.transaction([statement])),
    'a transaction of several statements': last(await database.transaction([statement, statement])),
    'a transaction that waits briefly': last(await database.transaction([statement], { lockTimeoutMs: 20 })),
    'a transaction in the slow lane': last(await database.transaction([statement, statement], { isSlow: true })),
    'a write': last(await database.write([statement, statement])),
    'a transaction of Kysely': await inTransaction(kysely),
    'an unlimited statement': await onlyRow(unlimited, statement),
    'an unlimited transaction': await inTransaction(unlimited),
  };
}

/** Those that wait for locks for a short time. */
const brief = ['a transaction that waits briefly', 'a write'];

for (const engine of engines) {
  test(`each way to send statements has what they rely on, on ${engine}`, async () => {
    await withFreshDatabase(engine, async ({ settings: opened, config: { connection } }) => {
      if (connection !== undefined) await setUnsuitable(connection);
      const database = await openDatabase(opened);
      try {
        const needed = Object.fromEntries(Object.entries(settings).map(([name, [, value]]) => [name, value]));
        // The embedded database has its own order of days and months, which only matters for input.
        if (engine === 'embedded')
          needed.datestyle = (await onlyRow(database.kysely, shown(['datestyle']))).datestyle ?? '';
        assert.match(needed.datestyle ?? '', /^ISO/);
        for (const [way, row] of Object.entries(await ways(database, shown(Object.keys(settings))))) {
          const isBrief = engine === 'postgresql' && brief.includes(way);
          assert.deepEqual(row, { ...needed, lock_timeout: isBrief ? '20ms' : '0' }, way);
        }
      } finally {
        await database.close();
      }
    });
  });
}

test('requests start no parallel workers, for which a plan that reads a few rows would wait', async () => {
  await withFreshDatabase('postgresql', async ({ settings: opened, config: { connection = '' } }) => {
    const name = 'max_parallel_workers_per_gather';
    await execute(connection, `alter database ${new URL(connection).pathname.slice(1)} set ${name} = 2`);
    const database = await openDatabase(opened);
    try {
      const all = Object.entries(await ways(database, shown([name])));
      for (const [way, row] of all) if (!way.startsWith('an unlimited')) assert.deepEqual(row, { [name]: '0' }, way);
    } finally {
      await database.close();
    }
  });
});

test('the service answers the same on a database with other defaults', async () => {
  const answersWith = (names: readonly string[]) =>
    withFreshDatabase('postgresql', async (database) => {
      await setUnsuitable(database.config.connection ?? '', names);
      const service = await openServiceOn(database);
      try {
        const send = requestsTo(service, 'placement 2.6');
        const [host, consumer] = [randomUUID(), randomUUID()];
        await makeProvider(send, host, { VCPU: { total: 10, allocation_ratio: 1.23456789012345 } });
        accepted(
          await send('PUT', `/allocations/${consumer}`, { ...newClaim({ [host]: { VCPU: 1 } }), expires_in: 3600 }),
        );
        const inventories = accepted(await send('GET', `/resource_providers/${host}/inventories`));
        const shownConsumer = accepted(await send('GET', `/consumers/${consumer}`)).json;
        const times = ['created_at', 'expires_at'].map(
          (name) => Date.parse(String(at(shownConsumer, name))) / 100_000_000,
        );
        return { inventories: inventories.json, times: times.map(Math.round) };
      } finally {
        await service.close();
      }
    });
  assert.deepEqual(await answersWith(Object.keys(settings)), await answersWith([]));
});

test('connections on which no trigger would run are refused, with the remedy', async () => {
  await withFreshDatabase('postgresql', async (database) => {
    const connection = database.config.connection ?? '';
    const name = new URL(connection).pathname.slice(1);
    await execute(connection, `alter database ${name} set session_replication_role = 'replica'`);
    await assert.rejects(
      openServiceOn(database),
      /session_replication_role is replica.*reset session_replication_role/,
    );
    await execute(connection, `alter database ${name} reset session_replication_role`);
    const opened = await openDatabase(database.settings);
    assert.equal(await unwatchedTablesProblem(opened), undefined);
    await opened.close();
  });
});

suite('behind PgBouncer in transaction mode', { skip: hasPgbouncer() ? false : 'pgbouncer is not installed' }, () => {
  test('transactions of several statements are at READ COMMITTED, on whichever connection of the server', () =>
    withFreshDatabase('postgresql', async ({ config: { connection = '' } }) => {
      await setUnsuitable(connection, ['default_transaction_isolation']);
      const pgbouncer = await startPgbouncer(connection, { default_pool_size: 4 });
      const database = await openDatabase({ connection: pgbouncer.url, maxPoolSize: 4, preparedStatements: false });
      try {
        const {
          'a statement': _,
          'an unlimited statement': __,
          'a transaction of one statement': ___,
          ...transactions
        } = await ways(database, isolation);
        for (const [way, row] of Object.entries(transactions))
          assert.deepEqual(row, { isolation: 'read committed' }, way);
        // Others are on connections of the server that were not prepared: by then there are new ones.
        const seen = new Set<unknown>();
        for (let time = 0; time < 20; time += 1) {
          await execute(
            connection,
            `select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()`,
          );
          const sent = [onlyRow(database.kysely, isolation), database.transaction([isolation, isolation])] as const;
          // PgBouncer notices some of the broken connections only by what it sends.
          const [alone, together] = await Promise.allSettled(sent);
          if (alone.status === 'fulfilled') seen.add(alone.value.isolation);
          if (together.status === 'fulfilled') assert.deepEqual(together.value[1], [{ isolation: 'read committed' }]);
        }
        assert.ok(seen.has('repeatable read'), 'some were on such a connection');
      } finally {
        await database.close();
        await pgbouncer.stop();
      }
    }));
});

test('functions that may not read whole tables are not compiled, whatever program calls them', async () => {
  await withFreshDatabase('postgresql', async ({ settings: opened }) => {
    const database = await openDatabase(opened);
    try {
      const { rows } = await sql<{ name: string; settings: readonly string[] }>`
        select proname as name, proconfig as settings from pg_proc
        where pronamespace = current_schema()::regnamespace and 'enable_seqscan=off' = any(proconfig)`.execute(
        database.kysely,
      );
      assert.ok(rows.length > 3);
      for (const { name, settings: set } of rows) assert.ok(set.includes('jit=off'), name);
    } finally {
      await database.close();
    }
  });
});
