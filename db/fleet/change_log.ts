import { type Kysely, type RawBuilder, sql } from 'kysely';
import { onlyRow } from '../engine/only_row.ts';
import { serverRun } from '../engine/server_state.ts';
import type { Tables } from '../tables.ts';

/** What a fleet was read by: the snapshot of PostgreSQL, and what shows later which changes the fleet lacks. */
export type FleetSnapshot = {
  /** PostgreSQL's text form of `pg_snapshot`. */
  readonly pgSnapshot: string;
  /** The newest transaction that had rows in the change log or in the log of inventory changes, as the text of an `xid8`. */
  readonly lastXid: string;
  /** The run of the server that the snapshot is of. */
  readonly serverRun: string;
  /** The transactions that wrote inventories, traits or aggregates, and that a fleet shows although they were not read. */
  readonly shown?: readonly string[];
};

/** A point of the logs: all rows of transactions up to `lastXid` were read, except of transactions that the snapshot has under way. */
export type LogPoint = Pick<FleetSnapshot, 'pgSnapshot' | 'lastXid'>;

/** The newest transaction with rows in a log. A restored dump may have rows of transactions that have not begun on this server. */
export const newestIn = (log: 'provider_changes' | 'inventory_changes'): RawBuilder<unknown> =>
  sql`(select xid from ${sql.table(log)} where xid < pg_snapshot_xmax(pg_current_snapshot()) order by xid desc limit 1)`;

/** The newest transaction whose rows may have been pruned from the change log. */
export const horizon = sql`(select xid from provider_changes_horizon order by xid desc limit 1)`;

/** Reads the snapshot of the current transaction; outside of a transaction, the snapshot of this statement. */
export const readFleetSnapshot = (db: Kysely<Tables>): Promise<FleetSnapshot> =>
  onlyRow(
    db,
    sql<FleetSnapshot>`select pg_current_snapshot()::text as "pgSnapshot", ${serverRun} as "serverRun",
      coalesce(greatest(${newestIn('provider_changes')}, ${newestIn('inventory_changes')}, ${horizon}), '0')::text as "lastXid"`,
  );

/** The newest of some transactions; null means none. */
export const newestXid = (first: string, ...others: readonly (string | null)[]): string =>
  others.reduce<string>((newest, xid) => (xid !== null && BigInt(xid) > BigInt(newest) ? xid : newest), first);

/**
 * The parts of the text of a `pg_snapshot`: transactions from `xmax` on had not begun, those in `underWay` were running, all others had
 * ended.
 */
export function snapshotParts(pgSnapshot: string): { readonly xmax: string; readonly underWay: readonly string[] } {
  const [, xmax = '0', list = ''] = pgSnapshot.split(':');
  return { xmax, underWay: list === '' ? [] : list.split(',') };
}

/** What was not read at a point. */
type Unread = {
  /** The first transaction after `lastXid`. */
  readonly next: bigint;
  /** The transactions that were under way, ascending. */
  readonly underWay: readonly string[];
  /** Ranges of transactions after `lastXid` that had ended without rows: their first and last ones. */
  readonly gaps: { readonly first: readonly string[]; readonly last: readonly string[] };
  /** All transactions from this one on. */
  readonly from: bigint;
};

/**
 * The transactions that were not read at a point. A transaction that ended without rows in the log, such as a rolled-back one, does not
 * count as read if it is newer than all transactions with rows. If the server crashes before anything of it is in the write-ahead log, its
 * number is assigned again. A number up to the number of a transaction whose commit is on the disk is never assigned again.
 */
function unreadAt({ pgSnapshot, lastXid }: LogPoint): Unread {
  const { underWay } = snapshotParts(pgSnapshot);
  const next = BigInt(lastXid) + 1n;
  const gaps = { first: [] as string[], last: [] as string[] };
  let from = next;
  for (const xid of underWay.map(BigInt)) {
    if (xid < from) continue;
    if (xid > from) {
      gaps.first.push(String(from));
      gaps.last.push(String(xid - 1n));
    }
    from = xid + 1n;
  }
  return { next, underWay, gaps, from };
}

/** Whether the rows of a transaction that has ended were read at a point. */
export function isRead({ pgSnapshot, lastXid }: LogPoint, xid: string): boolean {
  return BigInt(xid) <= BigInt(lastXid) && !snapshotParts(pgSnapshot).underWay.includes(xid);
}

/**
 * The transactions that were under way at a point and have ended since, ascending. Transactions that are still under way have
 * committed no row yet, but an index may hold many of their rows.
 */
const ended = (underWay: readonly string[]): RawBuilder<unknown> => sql`
        select xid from unnest(${underWay}::xid8[]) as xid where pg_visible_in_snapshot(xid, pg_current_snapshot())`;

/**
 * Rows of a log since a point. An index on xid finds them, so the time does not depend on the length of the log, nor on how long
 * some transaction has been open. Usually no transaction was under way, and only one range is read.
 *
 * Each range has two bounds, so that the planner takes it for a short one. In the first range the upper bound excludes
 * no visible row. For transactions that were under way both bounds are the same. For an equality instead, the planner would assume the
 * average number of rows of a transaction, and where that is thousands, it would read the whole log.
 */
function rowsSince(query: RawBuilder<unknown>, point: LogPoint, condition = sql``): RawBuilder<unknown> {
  const { underWay, gaps, from } = unreadAt(point);
  const later = sql`${query} where xid >= ${String(from)}::xid8 and xid < pg_snapshot_xmax(pg_current_snapshot())${condition}`;
  if (underWay.length === 0) return later;
  return sql`${later} union all select found.* from (
        select xid as first, xid as last from (${ended(underWay)}) as ended
        union all select * from unnest(${gaps.first}::xid8[], ${gaps.last}::xid8[]) as gap (first, last)
      ) as range
      cross join lateral (${query} where xid >= range.first and xid <= range.last${condition} offset 0) as found`;
}

/** The logged changes since a point. */
export const changesSince = (point: LogPoint): RawBuilder<unknown> =>
  rowsSince(
    sql`select xid, provider_id, whole, class_ids, used_deltas, uuid, parts, consumer_ids, logged_at from provider_changes`,
    point,
  );

/**
 * The newest transaction in `changes`; null without rows. Rows are ordered by the column `changes.xid`: the plain name `xid` would
 * mean the result, a text, in which 999 is above 1000.
 */
export const lastXid = sql`(select changes.xid::text from changes order by changes.xid desc limit 1)`;

/**
 * The providers whose inventories, traits, aggregates or parents changed since a snapshot, other than by what is shown; null means all.
 * If rows since the snapshot were pruned, the result has a null, since pruning leaves a row with null (see db/fleet/prune_changes.ts).
 */
export const inventoryChangesSince = ({
  shown = [],
  ...point
}: LogPoint & Pick<FleetSnapshot, 'shown'>): RawBuilder<unknown> =>
  rowsSince(
    sql`select provider_id from inventory_changes`,
    point,
    shown.length === 0 ? sql`` : sql` and xid <> all(${shown}::xid8[])`,
  );

/**
 * Whether the log may lack changes since a snapshot. Either old rows were pruned; or the database is at an earlier state
 * (a restore, or a failover that lost transactions); or another run of the server answers, which may have lost
 * transactions as well.
 */
export function isLogTooShort({ serverRun: run, ...point }: FleetSnapshot): RawBuilder<boolean> {
  return sql`(pg_snapshot_xmax(pg_current_snapshot()) <= ${point.lastXid}::xid8
        or ${serverRun} <> ${run}
        or ${isPruned(point)})`;
}

/**
 * Whether the log lacks rows that were not read at a point. Pruning deletes no row that is newer than the horizon, and none of a
 * transaction that is still under way. So the log may lack rows if the horizon is newer than the newest transaction that was read, or
 * has reached a transaction that was under way and has ended.
 */
export function isPruned(point: LogPoint): RawBuilder<boolean> {
  const { next, underWay } = unreadAt(point);
  const passed = underWay.filter((xid) => BigInt(xid) < next);
  const first =
    passed.length === 0
      ? sql`${String(next)}::xid8`
      : sql`coalesce((array(${ended(passed)}))[1], ${String(next)}::xid8)`;
  return sql`coalesce((select bool_or(xid >= ${first}) from provider_changes_horizon), true)`;
}
