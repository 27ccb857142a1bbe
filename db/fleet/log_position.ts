import { type Kysely, sql } from 'kysely';
import { onlyRow } from '../engine/only_row.ts';
import { serverRun } from '../engine/server_run.ts';
import type { Tables } from '../schema/tables.ts';
import { horizon, newestIn } from './change_log.ts';

/** Which change log it is, and how far it goes. */
export type LogState = {
  /**
   * The database on its server, the timeline of the server's write-ahead log, and the age of our schema. A restart keeps it. After a
   * failover, or in a restored copy, transactions may be missing or have other numbers, and it is another one. If commits do not wait
   * for the disk, the run of the server is part of it: a crash loses transactions that clients may have been told of.
   */
  readonly identity: string;
  /** The newest transaction in the log, as the text of an `xid8`. */
  readonly lastXid: string;
};

/**
 * Reads the state of the change log. The timeline is in the name of the file of the write-ahead log, since a server that was promoted
 * notes it in its control file only later. All embedded databases have one system identifier, so the time of the first migration is
 * part of the identity as well.
 */
export const readLogState = (db: Kysely<Tables>): Promise<LogState> =>
  onlyRow(
    db,
    sql<LogState>`select concat_ws(' ',
        (select system_identifier from pg_control_system()),
        left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
        (select oid from pg_database where datname = current_database()),
        (select min(timestamp) from kysely_migration),
        case when current_setting('synchronous_commit') = 'off' then ${serverRun} end) as identity,
      coalesce(greatest(${newestIn('provider_changes')}, ${horizon}), '0')::text as "lastXid"`,
  );
