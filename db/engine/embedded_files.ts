import { fdatasyncSync, fsyncSync } from 'node:fs';
import { PGlite, type postgresMod } from '@electric-sql/pglite';
import { NodeFS } from '@electric-sql/pglite/nodefs';

/**
 * PostgreSQL asks for a sync of its log by `fsync`: PGlite's `fdatasync`, which is PostgreSQL's default, does nothing and
 * cannot be replaced.
 */
export const syncSettings = ['-c', 'wal_sync_method=fsync'];

/** The files of an embedded database, for PGlite's option `fs`. */
export type DurableFiles = {
  readonly fs: NodeFS;
  /** How many files PostgreSQL has synced. */
  syncs(): number;
};

/**
 * The files of an embedded database in a folder, which are synced to the disk when PostgreSQL asks for that, and before
 * it goes on. So all that PostgreSQL promises after a power failure holds here as well: it syncs its log before it
 * commits, data files before a checkpoint counts, and folders after a file was made or renamed. PGlite's own `NodeFS`
 * answers all that without doing it.
 */
export function durableFiles(folder: string): DurableFiles {
  const fs = new NodeFS(folder);
  const init = fs.init.bind(fs);
  let syncs = 0;
  const addSync = ({ NODEFS }: postgresMod.PostgresMod): void => {
    // The types of PGlite have no members of its NODEFS. Emscripten calls `fsync`, if there is one, for each call of
    // PostgreSQL; its result and the errors of `tryFSOperation` are those of the call.
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

/** What is used here of Emscripten's file system on that of the machine. */
type HostFiles = {
  readonly stream_ops: { fsync?: (file: { readonly nfd: number; readonly path: string }) => number };
  tryFSOperation(operation: () => void): void;
};

/** Whether it is a file of the log. Of these only content and size matter, and the disk has half of the work with that. */
const isOfLog = (path: string): boolean => path.startsWith(`${PGlite.paths.PGDATA}/pg_wal/`);
