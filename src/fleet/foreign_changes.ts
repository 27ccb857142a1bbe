import { sql } from 'kysely';
import type { Database } from '../../db/connect.ts';

/**
 * Forgets logged changes of transactions that are yet to come, which only a dump of another server can have brought: every
 * refresh would take them for new. What is visible and our own server's is below the snapshot's xmax. A dump may also lack the
 * horizon, without which every refresh would load everything.
 */
export async function forgetForeignChanges({ kysely }: Database): Promise<void> {
  await sql`
    with foreign_changes as (
      delete from provider_changes where xid >= pg_snapshot_xmax(pg_current_snapshot())
    ), corrected as (
      update provider_changes_horizon set xid = pg_current_xact_id()
      where xid >= pg_snapshot_xmax(pg_current_snapshot())
    )
    insert into provider_changes_horizon
    select pg_current_xact_id() where not exists (select from provider_changes_horizon)`.execute(kysely);
}
