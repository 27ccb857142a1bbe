import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Database } from '../../db/connect.ts';

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
  const timer = setInterval(() => {
    running = pruneOnce(database, oldest).then(
      (xmin) => {
        oldest = xmin;
      },
      (error: unknown) => logger.warn({ err: error }, 'The change log could not be pruned; it is tried again later'),
    );
  }, keepMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    await running;
  };
}

/**
 * Deletes what transactions before `xid` logged, and says so to those who still might ask for it.
 *
 * @returns the oldest transaction that is under way now: where the next call may prune up to.
 */
export async function pruneOnce({ kysely }: Database, xid: string | undefined): Promise<string | undefined> {
  if (xid !== undefined) {
    // The horizon is the newest that was deleted, and stays where nothing was: a process with nothing to do for hours, in
    // which nothing changed, has nothing to load.
    await sql`
      with gone as (
        delete from provider_changes where xid < ${xid}::xid8 returning xid
      ), newest as (
        select xid from gone order by xid desc limit 1
      )
      update provider_changes_horizon h set xid = newest.xid from newest where h.xid < newest.xid`.execute(kysely);
  }
  const { rows } = await sql<{ xmin: string }>`select pg_snapshot_xmin(pg_current_snapshot())::text as xmin`.execute(
    kysely,
  );
  return rows[0]?.xmin;
}
