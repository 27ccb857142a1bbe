import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Database } from '../../db/connect.ts';
import { onlyRow } from '../../db/only_row.ts';

/** Changes are kept for one to two of these; a process that was away for longer loads everything when it comes back. */
const keepMs = 10 * 60_000;

/**
 * Deletes old rows of the change log from time to time. Every process does; that harms nobody.
 *
 * @returns a function that stops it.
 */
export function pruneChanges(database: Database, logger: Logger): () => Promise<void> {
  let oldest: string | undefined;
  let running: Promise<void> = Promise.resolve();
  let stopped = false;
  const timer = setInterval(() => {
    running = pruneOnce(database, oldest, () => stopped).then(
      (xmin) => {
        oldest = xmin;
      },
      (error: unknown) => logger.warn({ err: error }, 'The change log could not be pruned; it is tried again later'),
    );
  }, keepMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    stopped = true;
    await running;
  };
}

/**
 * So many rows go at once, some 50 ms of work: where upstream served the database for months, the log has more of them than a
 * statement may take time for.
 */
const batchSize = 50_000;

/** The oldest first, so that what is left is whole behind the horizon. @returns how many were deleted */
async function deleteOldest(kysely: Database['kysely'], xid: string): Promise<number> {
  // The horizon is the newest that was deleted, and stays where nothing was: a process with nothing to do for hours, in
  // which nothing changed, has nothing to load.
  const { count } = await onlyRow(
    kysely,
    sql<{ count: number }>`
      with gone as (
        delete from provider_changes
        where ctid = any(array(select ctid from provider_changes where xid < ${xid}::xid8 order by xid limit ${sql.lit(batchSize)}))
        returning xid
      ), newest as (
        select xid from gone order by xid desc limit 1
      ), moved as (
        update provider_changes_horizon h set xid = newest.xid from newest where h.xid < newest.xid
      )
      select count(*)::integer as count from gone`,
  );
  return count;
}

/**
 * Deletes what transactions before `xid` logged, and says so to those who still might ask for it.
 *
 * @param isStopped whether the rest is to be left
 * @returns the oldest transaction that is under way now: where the next call may prune up to.
 */
export async function pruneOnce(
  { kysely }: Database,
  xid: string | undefined,
  isStopped: () => boolean = () => false,
): Promise<string | undefined> {
  let deleted = batchSize;
  while (xid !== undefined && deleted === batchSize && !isStopped()) deleted = await deleteOldest(kysely, xid);
  const { rows } = await sql<{ xmin: string }>`select pg_snapshot_xmin(pg_current_snapshot())::text as xmin`.execute(
    kysely,
  );
  return rows[0]?.xmin;
}
