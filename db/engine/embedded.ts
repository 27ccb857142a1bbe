import { fdatasyncSync, fsyncSync } from 'node:fs';
import path from 'node:path';
import { setImmediate as untilIdle } from 'node:timers/promises';
import { messages, PGlite, type postgresMod } from '@electric-sql/pglite';
import { createPgConfig } from '@electric-sql/pglite/node-postgres';
import { NodeFS } from '@electric-sql/pglite/nodefs';
import { type Kysely, sql } from 'kysely';
import type pg from 'pg';
import type { Tables } from '../tables.ts';
import { inBackground } from './background.ts';
import { lockFolder, prepareFolder } from './embedded_folder.ts';
import { onlyRow } from './only_row.ts';

/** A running embedded PostgreSQL. */
export type Embedded = {
  /** The config for one pool. The pool closes the resources of its config, so the next pool needs a new config. */
  poolConfig(): pg.PoolConfig;
  close(): Promise<void>;
};

/** The source of a new database. Without one, PostgreSQL creates an empty database. */
export type EmbeddedOrigin = {
  /** A dump of a data folder (PGlite's `dumpDataDir`) that the new database starts from. */
  readonly template?: Blob;
  /** Returns a running database in memory, such as one that another test has used before. */
  readonly inMemory?: () => Promise<Embedded>;
};

/** The folder of an embedded database, and the source of a new one. */
export type EmbeddedSettings = EmbeddedOrigin & {
  /** The folder, which is created if it does not exist; the folder that it is in must exist. `memory://` stores nothing. */
  readonly embeddedPath: string;
  /**
   * Called when PostgreSQL has stopped by itself, since it could not write or sync its files. No statement is answered
   * from then on. A new process may open the database, which then has everything that was acknowledged.
   */
  readonly stopped?: ((error: Error) => void) | undefined;
};

/**
 * PostgreSQL's cache. With its default of 128 MB the process used 97 MB more memory from the start, and nothing was
 * faster.
 */
const sharedBuffers = ['-c', 'shared_buffers=32MB'];

/** Switches off a timer of recoveries, which would keep the process from ending after a recovery has failed. */
const noProgressTimer = ['-c', 'log_startup_progress_interval=0'];

/** The parameter of PGlite with which PostgreSQL syncs nothing. */
const withoutSync = '-F';

/**
 * Starts the embedded PostgreSQL (PGlite, in this process) in its folder. What it has committed survives a power failure,
 * unless it is in memory. The process does not end until it is closed.
 *
 * @throws Error with the remedy if another process uses the folder, or it cannot be used.
 */
export async function openEmbedded(settings: EmbeddedSettings): Promise<Embedded> {
  const { embeddedPath, inMemory, stopped = () => {} } = settings;
  if (embeddedPath.startsWith('memory://')) {
    if (inMemory !== undefined) return inMemory();
    const pglite = await PGlite.create({
      dataDir: 'memory://',
      ...(settings.template === undefined ? {} : { loadDataDir: settings.template }),
      startParams: [...PGlite.defaultStartParams, ...sharedBuffers],
    });
    return embedded(pglite, { stopped, unlock: () => {} });
  }
  const unlock = await lockFolder(embeddedPath).catch((error: unknown) => {
    throw folderFailure(embeddedPath, error);
  });
  try {
    const files = durableFiles(await prepareFolder(embeddedPath, settings.template));
    const pglite = await PGlite.create({
      fs: files.fs,
      startParams: [
        ...PGlite.defaultStartParams.filter((parameter) => parameter !== withoutSync),
        ...sharedBuffers,
        ...noProgressTimer,
        ...syncSettings,
      ],
    });
    // Every start syncs some files. If none was synced, this version of PGlite does not call our `fsync`.
    if (files.syncs() === 0) throw new Error('This version of PGlite does not sync files.');
    return embedded(pglite, { stopped, unlock });
  } catch (error) {
    unlock();
    throw startFailure(embeddedPath, error);
  }
}

function embedded(
  pglite: PGlite,
  { stopped, unlock }: { readonly stopped: (error: Error) => void; readonly unlock: () => void },
): Embedded {
  const hasStopped = refuseAfterStop(pglite, stopped);
  return {
    // There is a single connection. Statements wait for it in the queue of the pool, without a time limit.
    poolConfig: () => ({ ...createPgConfig(pglite), max: 1, idleTimeoutMillis: 0 }) as pg.PoolConfig,
    close: async () => {
      // After an error the client sends one more message without waiting for its answer. PGlite must still be open to
      // answer it.
      await untilIdle();
      // A database that has stopped must not write anything more, such as that it was closed in order.
      if (!hasStopped()) await pglite.close();
      unlock();
    },
  };
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'the file system is read-only',
  ENOENT: 'the folder that it would be made in does not exist',
  ENOTDIR: 'a part of the path is a file',
  ENOSPC: 'the disk is full',
};

/**
 * Why the operating system refused the folder of the embedded database, with the remedy. Any other error is returned as
 * it is.
 */
function folderFailure(folder: string, error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return error;
  return new Error(
    `The embedded database cannot be in ${path.resolve(folder)}: ${reasons[error.code] ?? error.message}. Set ` +
      '[placement_database] embedded_path to a folder that this user may write to, or connection to a PostgreSQL server.',
    { cause: error },
  );
}

/**
 * The error for files that the embedded PostgreSQL cannot start with, with the remedy. Its own error says only
 * "Aborted()".
 */
function startFailure(folder: string, error: unknown): Error {
  return new Error(
    `The embedded database in ${path.resolve(folder)} cannot be opened: the disk is full, or its files are damaged, are not this ` +
      "user's, or are of another version of PostgreSQL. If the disk is full, make room on it. Otherwise put a backup of the folder in its " +
      'place; or, to begin with an empty database, move the folder away or set [placement_database] embedded_path to another one.',
    { cause: error },
  );
}

/**
 * PostgreSQL syncs its log by `fsync`: PGlite's `fdatasync`, which is PostgreSQL's default, does nothing and
 * cannot be replaced.
 */
const syncSettings = ['-c', 'wal_sync_method=fsync'];

/** The files of an embedded database, for PGlite's option `fs`. */
type DurableFiles = {
  readonly fs: NodeFS;
  /** How many files PostgreSQL has synced. */
  syncs(): number;
};

/**
 * The files of an embedded database in a folder, which are synced to the disk when PostgreSQL requests a sync, and before
 * PostgreSQL continues. So the guarantees of PostgreSQL after a power failure hold as well: it syncs its log before it
 * commits, data files before a checkpoint counts, and folders after a file was made or renamed. PGlite's own `NodeFS`
 * answers the requests to sync without syncing.
 */
function durableFiles(folder: string): DurableFiles {
  const fs = new NodeFS(folder);
  const init = fs.init.bind(fs);
  let syncs = 0;
  const addSync = ({ NODEFS }: postgresMod.PostgresMod): void => {
    // The types of PGlite have no members of its NODEFS. Emscripten calls `fsync`, if there is one, for each call of
    // PostgreSQL; the call returns its result, and throws the errors of `tryFSOperation`.
    const hostFiles = NODEFS as unknown as HostFiles;
    hostFiles.stream_ops.fsync = ({ nfd, path }) => {
      hostFiles.tryFSOperation(() => (isOfLog(path) ? fdatasyncSync(nfd) : fsyncSync(nfd)));
      syncs += 1;
      return 0;
    };
  };
  fs.init = async (pglite, options) => {
    const { emscriptenOpts } = await init(pglite, options);
    return { emscriptenOpts: { ...emscriptenOpts, preRun: [...(emscriptenOpts.preRun ?? []), addSync] } };
  };
  return { fs, syncs: () => syncs };
}

/** The used part of Emscripten's interface to the file system of the machine. */
type HostFiles = {
  readonly stream_ops: { fsync?: (file: { readonly nfd: number; readonly path: string }) => number };
  tryFSOperation(operation: () => void): void;
};

/** Whether a file is of the log. Of such a file only content and size are synced, which is half of the work for the disk. */
const isOfLog = (path: string): boolean => path.startsWith(`${PGlite.paths.PGDATA}/pg_wal/`);

/**
 * Makes a PGlite whose PostgreSQL has stopped refuse every statement. PostgreSQL stops at once if it cannot write or sync
 * its log, as on a full or a broken disk. A server would be started again, and its clients would lose their connections.
 * PGlite ignores that PostgreSQL stopped, and continues with the rest in memory: it acknowledges writes that it does not carry out.
 *
 * @param onStop called once, when PostgreSQL has stopped
 * @returns whether it has stopped
 */
function refuseAfterStop(pglite: PGlite, onStop: (error: Error) => void): () => boolean {
  const causes: unknown[] = [];
  const hasStopped = (): boolean => causes.length > 0;
  const { Module } = pglite;
  const step = Module._PostgresMainLoopOnce;
  Module._PostgresMainLoopOnce = () => {
    try {
      step();
    } catch (error) {
      if (!isOfStatement(error)) causes.push(error);
      throw error; // PGlite ignores it
    }
  };
  const execute = pglite.execProtocolStream.bind(pglite);
  let refuse: ((message: Uint8Array) => messages.BackendMessage[]) | undefined;
  pglite.execProtocolStream = async (message, options) => {
    if (refuse !== undefined) return refuse(message);
    const answers: messages.BackendMessage[] = await execute(message, options).catch((error: unknown) => {
      if (hasStopped()) return [];
      throw error;
    });
    if (!hasStopped()) return answers;
    const reported = answers.find((answer) => answer instanceof messages.DatabaseError);
    const text = `the embedded database has stopped${reported === undefined ? '' : `: ${reported.message}`}`;
    refuse = refuser(text);
    onStop(new Error(text, { cause: causes[0] }));
    return refuse(message);
  };
  return hasStopped;
}

/** Answers messages as a server in shutdown does: an error for each statement, and nothing more until the next statement. */
function refuser(text: string): (message: Uint8Array) => messages.BackendMessage[] {
  let refused = false;
  return (message) => {
    const answers: messages.BackendMessage[] = [];
    if (!refused) {
      const error = new messages.DatabaseError(text, 0, 'error');
      error.severity = 'FATAL';
      error.code = crashShutdown;
      answers.push(error);
    }
    const endsStatement = ['Q', 'S'].includes(String.fromCharCode(message[0] ?? 0)); // a query, or a sync
    if (endsStatement) answers.push(new messages.ReadyForQueryMessage(0, 'I'));
    refused = !endsStatement;
    return answers;
  };
}

/** The SQLSTATE of a server that stopped. Whether it carried out the statement before is not known. */
const crashShutdown = '57P02';

/** The status with which PGlite's PostgreSQL leaves a statement that has an error. */
const errorOfStatement = 100;

const isOfStatement = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'status' in error && error.status === errorOfStatement;

/** How often the tables and the log are checked, in milliseconds. */
const everyMs = 15_000;

/**
 * How long the write-ahead log may get before a checkpoint. A start after a `kill -9` or a power failure reads it again.
 */
const longestLogBytes = 256 * 2 ** 20;

/**
 * Replaces autovacuum and the checkpointer, which the embedded PostgreSQL lacks. A vacuum, or a checkpoint, uses the one
 * connection like any statement: 25 ms for a table of 1,000 live and 27,000 dead rows.
 *
 * @param failed called with an error; the next round retries
 * @returns a function that stops this work, and resolves when none of it is under way.
 */
export const keepUp = (kysely: Kysely<Tables>, failed: (error: unknown) => void): (() => Promise<void>) =>
  inBackground({
    everyMs,
    failed,
    round: async () => {
      await vacuumTables(kysely);
      await shortenLog(kysely, longestLogBytes);
    },
  });

/**
 * Vacuums and analyzes the tables that need it, one after the other, by the rule of autovacuum: when a table has more dead
 * rows than 50 plus a fifth of its live rows, or when more than 50 plus a tenth changed since its statistics were made.
 */
export async function vacuumTables(kysely: Kysely<Tables>): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_stat_user_tables
    where n_dead_tup > 50 + n_live_tup / 5 or n_mod_since_analyze > 50 + n_live_tup / 10
    order by relname`.execute(kysely);
  for (const { name } of rows) await sql`vacuum (analyze) ${sql.table(name)}`.execute(kysely);
}

/**
 * Makes a checkpoint if the write-ahead log since the last checkpoint is longer. The log before the checkpoint is removed, or used again.
 */
export async function shortenLog(kysely: Kysely<Tables>, longestBytes: number): Promise<void> {
  const query = sql<{ isLonger: boolean }>`
    select pg_current_wal_insert_lsn() - redo_lsn > ${longestBytes} as "isLonger" from pg_control_checkpoint()`;
  if ((await onlyRow(kysely, query)).isLonger) await sql`checkpoint`.execute(kysely);
}
