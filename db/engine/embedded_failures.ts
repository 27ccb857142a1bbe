import path from 'node:path';

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
export function folderFailure(folder: string, error: unknown): unknown {
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
export function startFailure(folder: string, error: unknown): Error {
  return new Error(
    `The embedded database in ${path.resolve(folder)} cannot be opened: its files are damaged, are not this user's, are of ` +
      'another version of PostgreSQL, or the disk is full. Put a backup of the folder in its place; or, to begin with an empty ' +
      'database, move the folder away or set [placement_database] embedded_path to another one.',
    { cause: error },
  );
}
