/**
 * Logs are read through their indexes, even if they were short when the statement was planned, or if a transaction is
 * open for long.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql, type Transaction } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { onlyRow } from '../../db/engine/only_row.ts';
import {
  type FleetSnapshot,
  inventoryChangesSince,
  readFleetSnapshot,
  snapshotParts,
} from '../../db/fleet/change_log.ts';
import { checkForChanges, readChanges } from '../../db/fleet/read_changes.ts';
import { switchHistoryOn } from '../../db/statements/usage_history.ts';
import { listEndedRecords, listOpenRecords, sumUsage, type UsageFilter } from '../../db/statements/usage_records.ts';
import type { Tables } from '../../db/tables.ts';
import { withOtherConnection } from '../races/two_connections.ts';
import { anyEngine, withFreshDatabase } from '../support/engines.ts';

type Reads = { readonly scans: number; readonly rows: number };

type Read = {
  readonly table: string;
  readonly read: (database: Database, snapshot: FleetSnapshot) => Promise<unknown>;
};

const reads: Readonly<Record<string, Read>> = {
  'the changes of providers': { table: 'provider_changes', read: readChanges },
  'whether providers changed': { table: 'provider_changes', read: checkForChanges },
  'the changes of inventories': {
    table: 'inventory_changes',
    read: ({ kysely }, snapshot) => inventoryChangesSince(snapshot).execute(kysely),
  },
};

/** The number of rows that one read of the log looks at in the table. */
function readsOf(database: Database, { table, read }: Read, snapshot: FleetSnapshot): Promise<Reads> {
  const lookedAt = (transaction: Transaction<Tables>): Promise<Reads> =>
    onlyRow(
      transaction,
      sql<Reads>`select seq_scan::integer as scans, (seq_tup_read + idx_tup_fetch)::integer as rows
        from pg_stat_xact_user_tables where relname = ${table}`,
    );
  return database.kysely.transaction().execute(async (transaction) => {
    const before = await lookedAt(transaction);
    await read({ ...database, kysely: transaction }, snapshot);
    const after = await lookedAt(transaction);
    return { scans: after.scans - before.scans, rows: after.rows - before.rows };
  });
}

/** Adds rows to a log. @param xid of which transaction they are; default: of their own */
const grow = ({ kysely }: Database, { table }: Read, rows: number, xid?: string) => {
  const [columns, values] = table === 'provider_changes' ? [sql`, whole`, sql`, false`] : [sql``, sql``];
  return sql`insert into ${sql.table(table)} (xid${columns})
    select coalesce(${xid ?? null}::xid8, pg_current_xact_id())${values} from generate_series(1, ${rows}::integer)`.execute(
    kysely,
  );
};

for (const [what, reading] of Object.entries(reads)) {
  const { table, read } = reading;
  test(what, async () => {
    await withFreshDatabase(anyEngine, async ({ settings }) => {
      // One connection, which keeps its plans.
      const database = await openDatabase({ ...settings, maxPoolSize: 1 });
      const { kysely } = database;
      try {
        // The snapshot is as if a transaction was running when the log was short, and has ended.
        const early = await onlyRow(kysely, sql<{ xid: string }>`select pg_current_xact_id()::text as xid`);
        await grow(database, reading, 60);
        await sql`vacuum analyze ${sql.table(table)}`.execute(kysely);
        // The snapshot has no running transactions of other databases, because the statement would then have another
        // text.
        const now = async () => {
          const snapshot = await readFleetSnapshot(kysely);
          const { xmax } = snapshotParts(snapshot.pgSnapshot);
          const open = { ...snapshot, pgSnapshot: `${early.xid}:${xmax}:${early.xid}` };
          return { open, closed: { ...snapshot, pgSnapshot: `${xmax}:${xmax}:` } };
        };
        const planned = await now();
        for (const snapshot of Object.values(planned)) await readsOf(database, reading, snapshot);
        await grow(database, reading, 20_000);
        for (const when of ['as it was planned', 'with fresh statistics'] as const) {
          if (when === 'with fresh statistics') await sql`analyze ${sql.table(table)}`.execute(kysely);
          const { open, closed } = await now();
          await grow(database, reading, 3);
          for (const snapshot of [open, closed]) {
            const { scans, rows } = await readsOf(database, reading, snapshot);
            assert.equal(scans, 0, when);
            // Whether there is a change is known by one row. A plan that is made after autovacuum looks at the ends of the index.
            assert.ok(rows >= (read === checkForChanges ? 1 : 3) && rows < 20, `${when} it read ${rows} rows`);
          }
        }
      } finally {
        await database.close();
      }
    });
  });
}

for (const [what, reading] of Object.entries(reads)) {
  test(`${what}, while a transaction with many rows is under way that is newer than all that have ended`, async () => {
    await withOtherConnection(async ({ database, other }) => {
      await other.query('begin');
      const xid: string = (await other.query('select pg_current_xact_id()::text as xid')).rows[0].xid;
      // The statistics count rows that are visible, so these are.
      await grow(database, reading, 20_000, xid);
      const snapshot = await readFleetSnapshot(database.kysely);
      const { xmax } = snapshotParts(snapshot.pgSnapshot);
      const before = String(BigInt(xid) - 3n); // so that there is a gap as well
      const open = { ...snapshot, pgSnapshot: `${xid}:${xmax}:${xid}`, lastXid: before };
      await grow(database, reading, 3);
      const { scans, rows } = await readsOf(database, reading, open);
      assert.equal(scans, 0);
      assert.ok(rows >= (reading.read === checkForChanges ? 1 : 3) && rows < 20, `it read ${rows} rows`);
    });
  });
}

/** Writes allocations on five providers for consumers by their numbers, in one statement. */
const writeAllocations = (first: number, last: number) => sql`
  insert into allocations (resource_provider_id, consumer_id, resource_class_id, used)
  select 1 + n % 5, md5(n::text), class, 1 from generate_series(${first}::integer, ${last}::integer) as n, generate_series(0, 2) as class`;

test('triggers look up the allocations of a consumer by its index, while others are written and not committed', async () => {
  await withFreshDatabase('postgresql', async ({ settings }) => {
    const database = await openDatabase({ ...settings, maxPoolSize: 1 });
    const other = await openDatabase({ ...settings, maxPoolSize: 1 });
    const { kysely } = database;
    try {
      await switchHistoryOn(database);
      await sql`insert into projects (external_id) values ('p')`.execute(kysely);
      await sql`insert into users (external_id) values ('u')`.execute(kysely);
      await sql`insert into resource_providers (uuid, name, generation)
        select 'p' || n, 'p' || n, 0 from generate_series(1, 5) as n`.execute(kysely);
      await sql`insert into consumers (uuid, project_id, user_id, generation)
        select md5(n::text), 1, 1, 1 from generate_series(1, 1020) as n`.execute(kysely);
      await kysely.transaction().execute(async (transaction) => {
        const readRows = () =>
          onlyRow(
            transaction,
            sql<{ rows: number }>`select (seq_tup_read + idx_tup_fetch)::integer as rows
              from pg_stat_xact_user_tables where relname = 'allocations'`,
          );
        await writeAllocations(1, 1000).execute(transaction);
        await sql`analyze allocations`.execute(other.kysely);
        const before = await readRows();
        await writeAllocations(1001, 1020).execute(transaction);
        const after = await readRows();
        assert.ok(after.rows - before.rows < 1000, `${after.rows - before.rows} rows were read for 60 allocations`);
      });
    } finally {
      await database.close();
      await other.close();
    }
  });
});

test('records of one consumer or name are looked up by it where it holds something, and else in those of the project', async () => {
  await withFreshDatabase(anyEngine, async ({ settings }) => {
    // One connection, which keeps its plans.
    const database = await openDatabase({ ...settings, maxPoolSize: 1 });
    const { kysely } = database;
    try {
      await sql`insert into projects (external_id) select 'p' || n from generate_series(1, 100) as n`.execute(kysely);
      await sql`insert into consumers (uuid, project_id, user_id, generation)
        select md5(n::text), 1 + n % 100, 1, 1 from generate_series(1, 10000) as n`.execute(kysely);
      await sql`insert into consumer_names (consumer_id, name) select id, 'job ' || id / 2 from consumers`.execute(
        kysely,
      );
      await sql`insert into open_usage_records (consumer_id, project_id, name, resource_provider_id, resource_class_id, amount, began_at)
        select c.uuid, c.project_id, n.name, 1, 1, 1, now() from consumers c join consumer_names n on n.consumer_id = c.id`.execute(
        kysely,
      );
      await sql`insert into usage_records (id, consumer_id, project_id, name, amount, began_at, ended_at)
        select n, md5((n % 10000)::text), 1 + n % 100, 'job ' || n % 10000, 1, now() - interval '1 year', now() - interval '1 second' * n
        from generate_series(1, 20000) as n`.execute(kysely);
      await sql`analyze`.execute(kysely);
      const { uuid, name, project } = await onlyRow(
        kysely,
        sql<{ uuid: string; name: string; project: string }>`select c.uuid, n.name, p.external_id as project
          from consumers c join consumer_names n on n.consumer_id = c.id join projects p on p.id = c.project_id where c.uuid = md5('4321')`,
      );
      const of = (more: Partial<UsageFilter>): UsageFilter => ({
        consumers: undefined,
        name: undefined,
        projectId: project,
        userId: undefined,
        consumerType: undefined,
        providers: undefined,
        className: undefined,
        from: undefined,
        until: undefined,
        incomplete: { projectId: 'none', userId: 'none' },
        ...more,
      });
      const rowsRead = (table: string, read: (within: Database) => Promise<unknown>): Promise<number> =>
        kysely.transaction().execute(async (transaction) => {
          const soFar = () =>
            onlyRow(
              transaction,
              sql<{ rows: number }>`select (seq_tup_read + idx_tup_fetch)::integer as rows
                from pg_stat_xact_user_tables where relname = ${table}`,
            );
          const before = await soFar();
          await read({ ...database, kysely: transaction });
          return (await soFar()).rows - before.rows;
        });
      for (const asked of [{ consumers: [uuid] }, { name }]) {
        for (const owner of [{}, { projectId: undefined }]) {
          const filter = of({ ...asked, ...owner });
          const open = await rowsRead('open_usage_records', (within) =>
            listOpenRecords(within, filter, undefined, 1001),
          );
          assert.ok(open > 0 && open < 20, `${JSON.stringify(filter)} read ${open} open records`);
        }
        const filter = of(asked);
        const ended = await rowsRead('usage_records', (within) => listEndedRecords(within, filter, undefined, 1001));
        assert.ok(ended > 0 && ended <= 300, `${JSON.stringify(filter)} read ${ended} closed records`);
        const summed = await rowsRead('usage_records', (within) => sumUsage(within, filter, ['day'], 100));
        assert.ok(summed > 0 && summed <= 300, `${JSON.stringify(filter)} summed ${summed} closed records`);
      }
    } finally {
      await database.close();
    }
  });
});
