import path from 'node:path';
import { setImmediate as untilIdle } from 'node:timers/promises';
import { PGlite } from '@electric-sql/pglite';
import { createPgConfig } from '@electric-sql/pglite/node-postgres';
import type pg from 'pg';
import { durableFiles, refuseAfterStop, syncSettings } from './embedded_files.ts';
import { lockFolder, prepareFolder } from './embedded_folder.ts';

/** A running embedded PostgreSQL. */
export type Embedded = { readonly poolConfig: pg.PoolConfig; close(): Promise<void> };

export type EmbeddedSettings = {
  /** The folder, which is created if it does not exist; `memory://` stores nothing. */
  readonly embeddedPath: string;
  /** A dump of a data folder (PGlite's `dumpDataDir`) that a new database starts from. */
  readonly template?: Blob;
  /**
   * Called when PostgreSQL has stopped by itself, since it could not write or sync its files. No statement is answered
   * after that. A new process may open the database, which then has everything that was acknowledged.
   */
  readonly stopped?: (error: Error) => void;
};

/**
 * PostgreSQL's cache. With its default of 128 MB the process used 97 MB more memory from the start, and nothing was
 * faster.
 */
const sharedBuffers = ['-c', 'shared_buffers=32MB'];

/** The parameter of PGlite with which PostgreSQL syncs nothing. */
const withoutSync = '-F';

/**
 * Starts the embedded PostgreSQL (PGlite, in this process) in its folder. What it has committed survives a power failure,
 * unless it is in memory. The process does not end until it is closed.
 *
 * @throws Error with the remedy if another process uses the folder, or it cannot be used.
 */
export async function openEmbedded(settings: EmbeddedSettings): Promise<Embedded> {
  const { embeddedPath, stopped = () => {} } = settings;
  if (embeddedPath.startsWith('memory://')) {
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
        ...syncSettings,
      ],
    });
    // Every start syncs some files. Another version of PGlite may do without what syncs them here.
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
    poolConfig: { ...createPgConfig(pglite), max: 1, idleTimeoutMillis: 0 } as pg.PoolConfig,
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
  EEXIST: 'there is a file of this name',
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
    `The embedded database in ${path.resolve(folder)} cannot be opened: its files are damaged, are not this user's, are of ` +
      'another version of PostgreSQL, or the disk is full. Put a backup of the folder in its place; or, to begin with an empty ' +
      'database, move the folder away or set [placement_database] embedded_path to another one.',
    { cause: error },
  );
}
