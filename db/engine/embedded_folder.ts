import { chmod, lstat, mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { NodeFS } from '@electric-sql/pglite/nodefs';

/**
 * Makes sure that the folder of an embedded database has PostgreSQL's files, and that all of them are on the disk:
 * PostgreSQL relies on what was written before it started.
 *
 * - A new database is made beside its place, and gets its name when all of it is on the disk. After a power failure, or a
 *   kill -9, it is there as a whole or is made again.
 * - Other users of the machine cannot read it.
 * - An existing database is synced as a whole if it was not made, or synced, in this place: releases up to 0.1.0 never
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

/** Only the owner may look into PostgreSQL's files, also where the folder around them is open to every user. */
async function closeToOthers(data: string): Promise<void> {
  const { mode } = await lstat(data);
  if ((mode & 0o077) !== 0) await chmod(data, 0o700);
}

/** This file in a folder says that all files were synced. It has the identity of the folder, so a copy of it does not count. */
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
      const place = path.join(entry.parentPath, entry.name);
      if (entry.isDirectory()) await syncFolder(place);
      else if (entry.isFile()) await sync(place, 'r+');
    }
  };
  await Promise.all(Array.from({ length: syncsAtOnce }, syncNext));
  await syncFolder(folder);
  const marked = path.join(folder, mark);
  await writeFile(marked, await identityOf(folder), { mode: 0o600 });
  await sync(marked, 'r+');
  await syncFolder(folder);
}

/** Syncs the entries of a folder, and its own entry in the folder above, up to the root: any of them may be new. */
async function syncPath(folder: string): Promise<void> {
  for (let each = path.resolve(folder); ; each = path.dirname(each)) {
    await syncFolder(each);
    if (each === path.dirname(each)) return;
  }
}

/** Where folders cannot be opened, or synced, there is no need to, or no way. PostgreSQL ignores these errors as well. */
const notForFolders: readonly (string | undefined)[] = ['EACCES', 'EPERM', 'EISDIR', 'EINVAL', 'EBADF'];

const syncFolder = (folder: string): Promise<void> =>
  sync(folder, 'r').catch((error: NodeJS.ErrnoException) => {
    if (!notForFolders.includes(error.code)) throw error;
  });

async function sync(place: string, flags: 'r' | 'r+'): Promise<void> {
  const handle = await open(place, flags);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
