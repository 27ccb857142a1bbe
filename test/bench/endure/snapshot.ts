import type { Query } from '../../races/server_process.ts';
import type { MeasuredServer } from '../measured_server.ts';
import { cpuMs, residentMb } from '../processes.ts';
import type { Done } from './load.ts';

/** A table of the database, with its indexes. */
export type TableState = {
  readonly name: string;
  readonly tableBytes: number;
  readonly indexBytes: number;
  readonly liveRows: number;
  readonly deadRows: number;
};

/** What was used up to a moment, and how large everything is. */
export type Snapshot = {
  readonly atMs: number;
  readonly done: Done;
  readonly serverCpuMs: number;
  readonly databaseCpuMs: number;
  readonly residentMb: number;
  /** Since the database was made, or since its server was. */
  readonly counters: {
    readonly walBytes: number;
    readonly xids: number;
    readonly multixacts: number;
    readonly updates: number;
    readonly hotUpdates: number;
    readonly deadlocks: number;
    readonly temporaryFiles: number;
  };
  /** Rows of the change log. */
  readonly logRows: number;
  readonly tables: readonly TableState[];
};

/** Reads all figures. The counters of PostgreSQL's statistics are up to a second old. */
export async function takeSnapshot(server: MeasuredServer, query: Query, done: Done): Promise<Snapshot> {
  const at = {
    atMs: performance.now(),
    done: { ...done },
    serverCpuMs: cpuMs(server.pids()),
    databaseCpuMs: cpuMs(server.databasePid === undefined ? [] : [server.databasePid]),
    residentMb: residentMb(server.pids()),
  };
  const [row] = await query(`select json_build_object(
      'counters', json_build_object(
        'walBytes', pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0'),
        'xids', pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
        'multixacts', mxid_age('1'),
        'updates', (select sum(n_tup_upd) from pg_stat_user_tables),
        'hotUpdates', (select sum(n_tup_hot_upd) from pg_stat_user_tables),
        'deadlocks', d.deadlocks,
        'temporaryFiles', d.temp_files),
      'logRows', (select count(*) from provider_changes),
      'tables', (select json_agg(json_build_object('name', relname, 'tableBytes', pg_table_size(relid),
        'indexBytes', pg_indexes_size(relid), 'liveRows', n_live_tup, 'deadRows', n_dead_tup) order by relname)
        from pg_stat_user_tables)) as read
    from pg_stat_database d where d.datname = current_database()`);
  const read = row?.read as Pick<Snapshot, 'counters' | 'logRows' | 'tables'>; // what the query builds
  return { ...at, ...read };
}
