import type { Logger } from 'pino';
import { failureKind, failureOf, isLockRefused, isLostRace, isTimedOut } from '../../db/engine/failures.ts';
import { openRepeatedFailures } from './repeated_failures.ts';

/**
 * Logs why requests cannot use the database, once for all that fail for the same reason: where it cannot be reached, and where some
 * requests fail, since the database has no disk left, say, takes no writes, or another program holds a lock.
 */
export type Outages = {
  /**
   * Notes an error. @returns whether it is one of these failures;
   * then the caller need not log it
   */
  notice(error: unknown): boolean;
  /** Takes note of an answer of the database. @param sentMs when the query was sent, by `performance.now()` */
  answered(sentMs: number): void;
};

const unreached = 'The database cannot be reached: requests are answered 503 until it can';
const accessRefused =
  'The database refuses the login of the service: requests are answered 503 until it accepts it. Undo what was changed in the database, ' +
  'or correct [placement_database] connection and restart';
const connectionsRefused =
  'The database refuses further connections of the service: requests wait for those that are open, and are answered 503 when these have ' +
  'ended. After a new password correct [placement_database] connection and restart; otherwise undo what was changed in the database, ' +
  'or make room';
/** The outages that an answer of the database ends. Other outages end after a minute without such a failure. */
const endedByAnswers: readonly string[] = [unreached, accessRefused];

/** The line for the log about an error; undefined for an unknown error. */
function lineOf(error: unknown): string | undefined {
  switch (failureKind(error)) {
    case 'commits unconfirmed':
      return 'The database does not confirm commits: its synchronous standby may be gone. Writes are answered 503 until it does';
    case 'no space left':
      return 'The database has no disk or memory left, or cannot use its files: requests that need them are answered 503';
    case 'read-only':
      return 'The database is read-only: it is a standby, or default_transaction_read_only is on. Writes are answered 503';
    case 'prepared statements lost':
      return (
        'A pooler does not support prepared statements: requests that fail for this reason are answered 503. Set [placement_database] ' +
        'prepared_statements = false and restart; or give PgBouncer, 1.21 or newer, a max_prepared_statements above 0, or in session ' +
        'mode the server_reset_query DISCARD ALL'
      );
    case 'no id left':
      return (
        'A table has no id left for a new row: requests that need one are answered 503. ' +
        '"placement-status upgrade check" has the remedy'
      );
    case 'access refused':
      return accessRefused;
    case 'not permitted':
      return 'The role of the service lacks a privilege in the database: requests that need it are answered 503 until it is granted';
    case 'other schema':
      return (
        'Tables of the database are gone, or of another release: requests that need them are answered 503. Restore a backup; ' +
        '"placement-manage db sync" brings an older one up to date; or let search_path lead to the tables again'
      );
    case 'lock wait too long':
    case 'lock refused':
      return (
        'Another program holds a lock in the database for longer than a statement may take: requests that need it are answered 503. ' +
        'pg_stat_activity shows it, perhaps as "idle in transaction", and pg_blocking_pids() which sessions it blocks'
      );
    case 'timed out':
      return 'The database did not answer within [placement_database] statement_timeout: requests that wait for that long are answered 503';
    case 'lost race':
      return 'Transactions fail repeatedly by deadlocks or conflicts: such requests are answered 409, or 503 if they only read';
    case 'number too large':
    case 'text not storable':
      return 'The database cannot store a number or a text of a request: the request is answered 400';
    case 'unavailable':
    case 'no connection left':
      return unreached;
    case 'taken': // endpoints that expect this error name the value
    case undefined:
      return undefined;
  }
}

/** Creates an `Outages` for a database that can be reached at the moment. */
export function openOutages(logger: Logger): Outages & RefusedConnections {
  const failures = openRepeatedFailures(logger);
  const failed = (line: string, error: unknown): void => {
    const [name = line] = line.split(':', 1);
    failures.failed(line, { name, reason: failureOf(error), lasts: endedByAnswers.includes(line) });
  };
  return {
    notice: (error) => {
      const line = lineOf(error);
      if (line === undefined) return false;
      failed(line, error);
      return true;
    },
    refused: (error) => failed(connectionsRefused, error),
    // The answer to a query from before the failure does not prove that the database can be reached again.
    answered: (sentMs) => failures.over(endedByAnswers, 'The database can be reached again', sentMs),
  };
}

/** Where the pools of connections report that the database refuses a further connection, while requests go on with those that are open. */
type RefusedConnections = { readonly refused: (error: unknown) => void };

/** Where work in the background reports that it failed. */
export type Reported = { readonly logger: Pick<Logger, 'info' | 'warn'>; readonly outages: Outages };

/**
 * A function that logs an error of work that is done again soon, unless the work only lost a lock or a race, or the database is
 * unavailable.
 */
export const reporting =
  ({ logger, outages }: Reported, line: string) =>
  (error: unknown): void => {
    if (isLockRefused(error) || isLostRace(error)) return;
    if (!isTimedOut(error) && outages.notice(error)) return;
    logger.warn({ err: error }, line);
  };
