import { chmod, lstat, mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { PGlite } from '@electric-sql/pglite';
import { NodeFS } from '@electric-sql/pglite/nodefs';
import { FolderInUse } from './failures.ts';

/**
 * Makes sure that the folder of an embedded database has PostgreSQL's files, and that all of them are on the disk:
 * PostgreSQL relies on what was written before it started.
 *
 * - A new database is made under another name, and gets its own name when all of it is on the disk. After a power failure, or a
 *   kill -9, the database is complete, or is created again.
 * - Other users of the machine cannot read it.
 * - An existing database is synced as a whole if it was not made, or synced, where it is now: releases up to 0.1.0 never
 *   synced, and the programs that restore a backup do not either.
 *
 * @param template a dump of a data folder, which a new database starts from
 * @returns the folder of PostgreSQL's files
 */
export async function prepareFolder(folder: string, template: Blob | undefined): Promise<string> {
  const data = path.join(folder, 'postgresql');
  if ((await readIfAny(path.join(data, 'PG_VERSION'))) === undefined) {
    const unfinished = `${data}.unfinished`;
    await rm(unfinished, { recursive: true, force: true });
    await mkdir(unfinished, { mode: 0o700 });
    const pglite = await PGlite.create({
      fs: new NodeFS(unfinished),
      ...(template === undefined ? {} : { loadDataDir: template }),
    });
    await pglite.close();
    await syncAll(unfinished);
    await rename(unfinished, data);
    await syncPath(folder);
  } else if ((await readIfAny(path.join(data, mark))) !== (await identityOf(data))) {
    await syncAll(data);
    await syncPath(folder);
  }
  await closeToOthers(data);
  return data;
}

/** Lets only the owner read PostgreSQL's files, also where the folder around them is open to every user. */
async function closeToOthers(data: string): Promise<void> {
  const { mode } = await lstat(data);
  if ((mode & 0o077) !== 0) await chmod(data, 0o700);
}

/** A file of this name says that all files of its folder were synced. It contains the identity of the folder, so a copy does not count. */
const mark = 'synced';

async function identityOf(folder: string): Promise<string> {
  const { ino, birthtimeNs } = await lstat(folder, { bigint: true });
  return `inode ${ino}, made at ${birthtimeNs}\n`;
}

const readIfAny = (file: string): Promise<string | undefined> =>
  readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });

/** How many files are synced at the same time. One after the other they take six times as long. */
const syncsAtOnce = 16;

/** Syncs all files of a folder and the folders in it, and then marks it. */
async function syncAll(folder: string): Promise<void> {
  const entries = (await readdir(folder, { recursive: true, withFileTypes: true })).values();
  const syncNext = async (): Promise<void> => {
    for (const entry of entries) {
      const file = path.join(entry.parentPath, entry.name);
      if (entry.isDirectory()) await syncFolder(file);
      else if (entry.isFile()) await sync(file, 'r+');
    }
  };
  await Promise.all(Array.from({ length: syncsAtOnce }, syncNext));
  await syncFolder(folder);
  const marked = path.join(folder, mark);
  await writeFile(marked, await identityOf(folder), { mode: 0o600 });
  await sync(marked, 'r+');
  await syncFolder(folder);
}

/** Syncs the entries of a folder, and the entry of the folder in its parent, up to the root: any of them may be new. */
async function syncPath(folder: string): Promise<void> {
  for (let each = path.resolve(folder); ; each = path.dirname(each)) {
    await syncFolder(each);
    if (each === path.dirname(each)) return;
  }
}

/**
 * On systems where folders cannot be opened or synced, syncing them is not needed or not possible. PostgreSQL ignores these errors as well.
 */
const notForFolders: readonly (string | undefined)[] = ['EACCES', 'EPERM', 'EISDIR', 'EINVAL', 'EBADF'];

const syncFolder = (folder: string): Promise<void> =>
  sync(folder, 'r').catch((error: NodeJS.ErrnoException) => {
    if (!notForFolders.includes(error.code)) throw error;
  });

async function sync(file: string, flags: 'r' | 'r+'): Promise<void> {
  const handle = await open(file, flags);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Locks of this process. SQLite releases the lock of an object that is garbage-collected. */
const held = new Set<DatabaseSync>();

/**
 * Lets one process at a time use the folder of an embedded database, which is created in its parent if it does not exist: the process
 * holds a lock of the operating system on a file of the folder. The system grants this lock to one process at a time, also over
 * several containers, and releases it when the process ends, also after a kill -9.
 *
 * Node.js can lock files only by its SQLite: a transaction that may write holds such a lock on its file. Nothing is written,
 * and the file is never removed: two processes could then hold locks on two files of the same name.
 *
 * @returns a function that unlocks the folder
 * @throws Error with the remedy if another process uses the folder; the error of the operating system if this user may
 *   not write there
 */
export async function lockFolder(folder: string): Promise<() => void> {
  // Not with its parents: a path with a mistake would begin an empty database. Nor would Node.js say that a file system is read-only then.
  await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const file = path.join(folder, 'in-use.lock');
  // The error of SQLite has no reason why it cannot open or write to the file.
  await (await open(file, 'a', 0o600)).close();
  const lock = new DatabaseSync(file, { timeout: 0 });
  try {
    // With the journal in memory, a process that is killed leaves no journal file.
    lock.exec('pragma journal_mode = memory; begin immediate');
    if (await isUsedByOlderRelease(folder)) throw inUse(folder);
  } catch (error) {
    lock.close();
    throw isBusy(error) ? inUse(folder) : error;
  }
  held.add(lock);
  return () => {
    held.delete(lock);
    lock.close();
  };
}

const inUse = (folder: string) =>
  new FolderInUse(
    `The embedded database in ${folder} is in use by another process. Stop that process, or set ` +
      '[placement_database] embedded_path to another folder, or connection to a PostgreSQL server for several processes.',
  );

const sqliteBusy = 5;

/** Whether SQLite could not get the lock. The lowest eight bits of its error codes have the kind of an error. */
const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === sqliteBusy;

/** Processes of releases up to 0.1.0 do not hold the lock. They listen on a socket in the folder. */
function isUsedByOlderRelease(folder: string): Promise<boolean> {
  const absolute = path.resolve(folder, 'in-use.sock');
  const relative = path.relative(process.cwd(), absolute);
  return new Promise((resolve) => {
    // The path of a socket is limited to some 100 bytes.
    const socket = net.connect(relative.length < absolute.length ? relative : absolute);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    // A process that is busy may have more connections waiting than its queue takes.
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'EAGAIN'));
  });
}
