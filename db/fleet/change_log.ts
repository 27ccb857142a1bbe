import { type Kysely, type RawBuilder, sql } from 'kysely';
import { onlyRow } from '../engine/only_row.ts';
import { serverRun } from '../engine/server_run.ts';
import type { Tables } from '../schema/tables.ts';

/** When something was read: a snapshot in PostgreSQL's text form, and the run of the server that the snapshot is of. */
export type Moment = { readonly snapshot: string; readonly serverRun: string };

/** Reads the moment of the current transaction; outside of a transaction, the present moment. */
export const readMoment = (db: Kysely<Tables>): Promise<Moment> =>
  onlyRow(db, sql<Moment>`select pg_current_snapshot()::text as snapshot, ${serverRun} as "serverRun"`);

/**
 * Parses a snapshot: transactions from `xmax` on had not begun, those in `underWay` were running, all others had ended.
 */
export function partsOf(snapshot: string): { readonly xmax: string; readonly underWay: readonly string[] } {
  const [, xmax = '0', list = ''] = snapshot.split(':');
  return { xmax, underWay: list === '' ? [] : list.split(',') };
}

/**
 * Those of the transactions under way at a moment that have ended since, ascending. The others have committed no row
 * yet, but an index may hold many rows of theirs.
 */
const ended = (underWay: readonly string[]): RawBuilder<unknown> => sql`
        select xid from unnest(${underWay}::xid8[]) as xid where pg_visible_in_snapshot(xid, pg_current_snapshot())`;

/**
 * Rows of a log since a moment: the rows of transactions that its snapshot does not see. These are all transactions
 * from its xmax on, and those that were under way. An index on xid finds both, so the time does not depend on the
 * length of the log, nor on how long some transaction has been open. Usually no transaction was under way, and only one
 * range is read.
 *
 * Each range has two bounds, so that the planner takes it for a short one. In the first range the upper bound excludes
 * no visible row. In the second both bounds are the same: for an equality the planner would assume the average number
 * of rows of a transaction, and where that is thousands, it would read the whole log.
 */
function rowsSince(query: RawBuilder<unknown>, { snapshot }: Pick<Moment, 'snapshot'>): RawBuilder<unknown> {
  const { xmax, underWay } = partsOf(snapshot);
  const later = sql`${query} where xid >= ${xmax}::xid8 and xid < pg_snapshot_xmax(pg_current_snapshot())`;
  if (underWay.length === 0) return later;
  return sql`${later} union all select found.* from (${ended(underWay)}) as ended
      cross join lateral (${query} where xid >= ended.xid and xid <= ended.xid offset 0) as found`;
}

/** The logged changes since a moment. */
export const changesSince = (moment: Pick<Moment, 'snapshot'>): RawBuilder<unknown> =>
  rowsSince(sql`select xid, provider_id, whole, class_ids, used_deltas, uuid, parts from provider_changes`, moment);

/**
 * The newest transaction in `changes`; null without rows. It is ordered by the column: the plain name would be that of
 * the result, a text, in which 999 is above 1000.
 */
export const lastXid = sql`(select changes.xid::text from changes order by changes.xid desc limit 1)`;

/**
 * The providers whose inventories, traits, aggregates or parents changed since a moment; null means all. For a moment whose
 * rows were pruned the result has a null, since pruning leaves a row with null (see db/fleet/prune_changes.ts).
 */
export const inventoryChangesSince = (moment: Moment): RawBuilder<unknown> =>
  rowsSince(sql`select provider_id from inventory_changes`, moment);

/**
 * Whether the log may lack changes since a moment. Either old rows were pruned; or the database is at an earlier moment
 * (a restore, or a failover that lost transactions); or another run of the server answers, which may have lost
 * transactions as well.
 *
 * Pruning deletes no row that is newer than the horizon, and none of a transaction that is still under way. So the log
 * may lack rows if the horizon has reached the snapshot's xmax, or a transaction that was under way and has ended.
 */
export function isLogTooShort({ snapshot, serverRun: run }: Moment): RawBuilder<boolean> {
  const { xmax } = partsOf(snapshot);
  return sql`(pg_snapshot_xmax(pg_current_snapshot()) < ${xmax}::xid8
        or ${serverRun} <> ${run}
        or ${isPruned(snapshot)})`;
}

/** Whether the log lacks rows that a snapshot does not see. */
export function isPruned(snapshot: string): RawBuilder<boolean> {
  const { xmax, underWay } = partsOf(snapshot);
  const first =
    underWay.length === 0 ? sql`${xmax}::xid8` : sql`coalesce((array(${ended(underWay)}))[1], ${xmax}::xid8)`;
  return sql`coalesce((select bool_or(xid >= ${first}) from provider_changes_horizon), true)`;
}
