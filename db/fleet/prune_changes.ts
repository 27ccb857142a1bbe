import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { onlyRow } from '../engine/only_row.ts';

/**
 * How many rows one statement deletes, in 80 to 250 ms. After months in which only upstream served the database, deleting
 * all old rows of the log at once would exceed the time limit of a statement.
 */
const batchSize = 10_000;

/** How many rows a statement has deleted. */
type PrunedCount = { readonly count: number };

/**
 * Deletes the oldest changes before `xid`. The oldest go first, so that no change newer than the horizon is missing.
 *
 * The horizon is the newest deleted transaction. It does not move if no row was deleted: so a process that is idle
 * for hours, in which nothing changed, need not load the fleet afterwards.
 */
const deleteOldest = (xid: string) => sql<PrunedCount>`
  with gone as (
    delete from provider_changes
    where ctid = any(array(select ctid from provider_changes where xid < ${xid}::xid8 order by xid limit ${sql.lit(batchSize)}))
    returning xid
  ), newest as (
    select xid from gone order by xid desc limit 1
  ), moved as (
    update provider_changes_horizon h set xid = newest.xid from newest where h.xid < newest.xid
  )
  select count(*)::integer as count from gone`;

/**
 * Deletes the oldest changes in the log of inventory changes, which claims read. This log has no horizon, since each claim
 * would have to read it. Instead a row about all providers is inserted, so that claims that were judged earlier
 * are judged again. If only such rows are old, they stay.
 */
const deleteOldestOfInventories = (xid: string) => sql<PrunedCount>`
  with gone as (
    delete from inventory_changes where ctid = any(array(
      select ctid from inventory_changes where xid < ${xid}::xid8 order by xid limit ${sql.lit(batchSize)}
    )) and exists (select from inventory_changes where xid < ${xid}::xid8 and provider_id is not null)
    returning xid
  ), left_behind as (
    insert into inventory_changes select where exists (select from gone)
  )
  select count(*)::integer as count from gone`;

/**
 * Deletes the logged changes of transactions before `xid`, and records that older changes are missing.
 *
 * @param isStopped whether to end after the current statement
 * @returns the oldest transaction that is under way now; the next call may prune all changes before it.
 */
export async function pruneChanges(
  { kysely }: Database,
  xid: string | undefined,
  isStopped: () => boolean = () => false,
): Promise<string> {
  for (const deleteSome of [deleteOldest, deleteOldestOfInventories]) {
    let deleted = batchSize;
    while (xid !== undefined && deleted === batchSize && !isStopped())
      deleted = (await onlyRow(kysely, deleteSome(xid))).count;
  }
  const oldest = sql<{ readonly xmin: string }>`select pg_snapshot_xmin(pg_current_snapshot())::text as xmin`;
  return (await onlyRow(kysely, oldest)).xmin;
}
