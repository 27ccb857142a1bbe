import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';

/**
 * Deletes logged changes of transactions that have not begun on this server. Only a dump of another server can have
 * brought them, and every refresh would take them for new; visible changes of this server are below the snapshot's
 * xmax. A dump may also lack the row of the horizon: it is inserted, because without it every refresh would load
 * everything.
 */
export async function forgetForeignChanges({ kysely }: Database): Promise<void> {
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
