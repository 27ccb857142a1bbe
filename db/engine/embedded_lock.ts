import { mkdir, open } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Locks of this process. SQLite gives up the lock of an object that is garbage-collected. */
const held = new Set<DatabaseSync>();

/**
 * Lets one process at a time use the folder of an embedded database, which is created if it does not exist: it holds a
 * lock of the operating system on a file there. The system grants this lock to one process of all that ask at the same
 * time, also in several containers, and takes it back when the process ends, also after a kill -9.
 *
 * Node.js can lock files only by its SQLite, of which a transaction that may write holds such a lock. Nothing is written,
 * and the file is never removed: two processes could then hold locks on two files of the same name.
 *
 * @returns a function that unlocks the folder
 * @throws Error with the remedy if another process uses the folder; the error of the operating system if this user may
 *   not write there
 */
export async function lockFolder(folder: string): Promise<() => void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = path.join(folder, 'in-use.lock');
  // SQLite would not say why it cannot open or write to the file.
  await (await open(file, 'a', 0o600)).close();
  const lock = new DatabaseSync(file, { timeout: 0 });
  try {
    // Without a journal in a file, none is left by a process that was killed.
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
  new Error(
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
