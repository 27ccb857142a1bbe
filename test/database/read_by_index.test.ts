/**
 * Logs are read through their indexes, even if they were short when the statement was planned, or if a transaction is
 * open for long.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql, type Transaction } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { onlyRow } from '../../db/engine/only_row.ts';
import { inventoryChangesSince, type Moment, partsOf, readMoment } from '../../db/fleet/change_log.ts';
import { lookForChanges } from '../../db/fleet/look_for_changes.ts';
import { readChanges } from '../../db/fleet/read_changes.ts';
import type { Tables } from '../../db/schema/tables.ts';
import { engines, withFreshDatabase } from '../engines.ts';

type Reads = { readonly scans: number; readonly rows: number };

type Read = { readonly table: string; readonly read: (database: Database, moment: Moment) => Promise<unknown> };

const reads: Readonly<Record<string, Read>> = {
  'the changes of providers': { table: 'provider_changes', read: readChanges },
  'whether providers changed': { table: 'provider_changes', read: lookForChanges },
  'the changes of inventories': {
    table: 'inventory_changes',
    read: ({ kysely }, moment) => inventoryChangesSince(moment).execute(kysely),
  },
};

for (const engine of engines) {
  for (const [what, { table, read }] of Object.entries(reads)) {
    test(`${what} on ${engine}`, async () => {
      await withFreshDatabase(engine, async ({ settings }) => {
        // One connection, which keeps its plans.
        const database = await openDatabase({ ...settings, maxPoolSize: 1 });
        const { kysely } = database;
        const grow = (rows: number) =>
          sql`insert into ${sql.table(table)} ${table === 'provider_changes' ? sql`(whole) select false` : sql`select`}
            from generate_series(1, ${rows}::integer)`.execute(kysely);
        const lookedAt = (transaction: Transaction<Tables>): Promise<Reads> =>
          onlyRow(
            transaction,
            sql<Reads>`select seq_scan::integer as scans, (seq_tup_read + idx_tup_fetch)::integer as rows
              from pg_stat_xact_user_tables where relname = ${table}`,
          );
        /** The number of rows that one read of the log looks at in the table. */
        const looksAt = (moment: Moment): Promise<Reads> =>
          kysely.transaction().execute(async (transaction) => {
            const before = await lookedAt(transaction);
            await read({ ...database, kysely: transaction }, moment);
            const after = await lookedAt(transaction);
            return { scans: after.scans - before.scans, rows: after.rows - before.rows };
          });
        try {
          // The moment is as if a transaction was running when the log was short, and has ended.
          const early = await onlyRow(kysely, sql<{ xid: string }>`select pg_current_xact_id()::text as xid`);
          await grow(60);
          await sql`vacuum analyze ${sql.table(table)}`.execute(kysely);
          // The moment has no running transactions of other databases, because the statement would then have another
          // text.
          const now = async () => {
            const moment = await readMoment(kysely);
            const { xmax } = partsOf(moment.snapshot);
            const open = { ...moment, snapshot: `${early.xid}:${xmax}:${early.xid}` };
            return { open, closed: { ...moment, snapshot: `${xmax}:${xmax}:` } };
          };
          const planned = await now();
          for (const moment of Object.values(planned)) await looksAt(moment);
          await grow(20_000);
          for (const when of ['as it was planned', 'with fresh statistics'] as const) {
            if (when === 'with fresh statistics') await sql`analyze ${sql.table(table)}`.execute(kysely);
            const { open, closed } = await now();
            await grow(3);
            for (const moment of [open, closed]) {
              const { scans, rows } = await looksAt(moment);
              assert.equal(scans, 0, when);
              // Whether there is a change is known by one row. A plan that is made after autovacuum looks at the ends of the index.
              assert.ok(rows >= (read === lookForChanges ? 1 : 3) && rows < 20, `${when} it looked at ${rows} rows`);
            }
          }
        } finally {
          await database.close();
        }
      });
    });
  }
}
