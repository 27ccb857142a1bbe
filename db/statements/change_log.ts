import { type Kysely, type RawBuilder, sql } from 'kysely';
import { onlyRow } from '../only_row.ts';
import { serverRun } from '../server_run.ts';
import type { Tables } from '../tables.ts';

/** The moment at which something was read: a snapshot in PostgreSQL's text form, and the run of the server that gave it. */
export type Moment = { readonly snapshot: string; readonly serverRun: string };

/** Tells the moment that a transaction shows, or that a statement of its own would show now. */
export const readMoment = (db: Kysely<Tables>): Promise<Moment> =>
  onlyRow(db, sql<Moment>`select pg_current_snapshot()::text as snapshot, ${serverRun} as "serverRun"`);

const snapshotOf = ({ snapshot }: Moment): RawBuilder<unknown> => sql`${snapshot}::pg_snapshot`;

/**
 * The logged changes since a moment, whose transactions its snapshot does not call visible. None of them is older than its
 * xmin, which the index finds; the upper bound, which nothing visible exceeds, tells the planner that the range is a short one.
 */
export function changesSince(moment: Moment): RawBuilder<unknown> {
  const snapshot = snapshotOf(moment);
  return sql`
      select xid, provider_id, whole, class_ids, used_deltas from provider_changes
      where xid >= pg_snapshot_xmin(${snapshot}) and xid < pg_snapshot_xmax(pg_current_snapshot())
        and not pg_visible_in_snapshot(xid, ${snapshot})`;
}

/**
 * Whether the log does not tell all that changed since a moment: it no longer goes back so far, or the database is at an
 * earlier one (a restore, or a failover that lost transactions), or may have been, since its server is not the same.
 */
export function isLogTooShort(moment: Moment): RawBuilder<boolean> {
  const snapshot = snapshotOf(moment);
  return sql`(pg_snapshot_xmax(pg_current_snapshot()) < pg_snapshot_xmax(${snapshot})
        or ${serverRun} <> ${moment.serverRun}
        or coalesce((select bool_or(xid >= pg_snapshot_xmin(${snapshot})) from provider_changes_horizon), true))`;
}
