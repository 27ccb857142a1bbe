import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const gibibyte = 1024 ** 3;
const memory = '/dev/shm';

/**
 * Makes this process, and those that it starts, write their temporary files in memory, unless TMPDIR says where they are.
 *
 * @returns a function that removes the files
 */
export async function useMemoryFolder(): Promise<() => Promise<void>> {
  const folder = process.env.TMPDIR === undefined ? await openMemoryFolder() : undefined;
  if (folder === undefined) return async () => {};
  process.env.TMPDIR = folder;
  return () => rm(folder, { recursive: true, force: true });
}

/**
 * A folder in memory for the temporary files of all tests. They make and remove hundreds of databases of a thousand files each, and
 * ext4 takes up to five times as long for a new file when many were removed in the last seconds.
 *
 * @returns undefined if there is no such file system, too little room, or programs may not run there (noexec)
 */
async function openMemoryFolder(): Promise<string | undefined> {
  const free = await statfs(memory).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  if (free < 4 * gibibyte || process.availableMemory() < 8 * gibibyte) return undefined;
  const folder = await mkdtemp(`${memory}/placement-tests-`);
  try {
    await chmod(folder, 0o1777); // root starts PostgreSQL as another user
    const program = `${folder}/program`;
    await writeFile(program, '#!/bin/sh\n', { mode: 0o755 });
    await promisify(execFile)(program);
    return folder;
  } catch {
    await rm(folder, { recursive: true, force: true });
    return undefined;
  }
}
