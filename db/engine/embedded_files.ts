import { fdatasyncSync, fsyncSync } from 'node:fs';
import { messages, PGlite, type postgresMod } from '@electric-sql/pglite';
import { NodeFS } from '@electric-sql/pglite/nodefs';

/**
 * PostgreSQL asks for a sync of its log by `fsync`: PGlite's `fdatasync`, which is PostgreSQL's default, does nothing and
 * cannot be replaced.
 */
export const syncSettings = ['-c', 'wal_sync_method=fsync'];

/** The files of an embedded database, for PGlite's option `fs`. */
type DurableFiles = {
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

/**
 * Makes a PGlite whose PostgreSQL has stopped refuse every statement. PostgreSQL stops at once if it cannot write or sync
 * its log, as on a full or a broken disk. A server would be started again, and its clients would lose their connections.
 * PGlite ignores this, and goes on with what is left in memory: it acknowledges writes that it does not carry out.
 *
 * @param onStop called once, when PostgreSQL has stopped
 * @returns whether it has stopped
 */
export function refuseAfterStop(pglite: PGlite, onStop: (error: Error) => void): () => boolean {
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
    const told = answers.find((answer) => answer instanceof messages.DatabaseError);
    const text = `the embedded database has stopped${told === undefined ? '' : `: ${told.message}`}`;
    refuse = refuser(text);
    onStop(new Error(text, { cause: causes[0] }));
    return refuse(message);
  };
  return hasStopped;
}

/** Answers messages as a server does that ends: an error for each statement, and after it nothing until the next one. */
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
