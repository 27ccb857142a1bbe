import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { onlyRow } from '../engine/only_row.ts';
import { isReadOnly } from '../engine/sqlstate.ts';

/**
 * Deletes logged changes of transactions that have not begun on this server. Only a dump of another server can have
 * brought them, and every refresh would take them for new; visible changes of this server are below the snapshot's
 * xmax. A dump may also lack the row of the horizon: it is inserted, because without it every refresh would load
 * everything.
 *
 * Where `default_transaction_read_only` is on, nothing is done, so that reads are served: they are correct, and only slower where there are
 * such rows.
 *
 * @throws `readOnlyTransaction` on a standby, which may lack changes that were read already
 */
export async function forgetForeignChanges(database: Database): Promise<void> {
  try {
    await forget(database);
  } catch (error) {
    if (!isReadOnly(error)) throw error;
    const recovery = sql<{ readonly isStandby: boolean }>`select pg_is_in_recovery() as "isStandby"`;
    if ((await onlyRow(database.kysely, recovery)).isStandby) throw error;
  }
}

async function forget({ kysely }: Database): Promise<void> {
  await sql`
    with foreign_changes as (
      delete from provider_changes where xid >= pg_snapshot_xmax(pg_current_snapshot())
    ), foreign_inventory_changes as (
      delete from inventory_changes where xid >= pg_snapshot_xmax(pg_current_snapshot())
    ), corrected as (
      update provider_changes_horizon set xid = pg_current_xact_id()
      where xid >= pg_snapshot_xmax(pg_current_snapshot())
    )
    insert into provider_changes_horizon
    select pg_current_xact_id() where not exists (select from provider_changes_horizon)`.execute(kysely);
}
