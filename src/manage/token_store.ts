import { setTimeout } from 'node:timers/promises';
import type { Database } from '../../db/engine/connect.ts';
import { FolderInUse } from '../../db/engine/failures.ts';
import { deleteToken, listTokens } from '../../db/statements/tokens.ts';
import {
  type IssuedToken,
  issueToken,
  type ShownToken,
  showToken,
  type WantedToken,
} from '../access/tokens/stored_tokens.ts';
import { allPages } from '../client/pages.ts';
import { operatorSocket } from '../http/server/operator_socket.ts';
import { type ConfigFlags, loadConfig } from '../start/config_flags.ts';
import { withCurrentDatabase } from './configured_database.ts';

/** The tokens of the configured database. */
export type TokenStore = {
  create(wanted: WantedToken): Promise<IssuedToken>;
  list(): Promise<readonly ShownToken[]>;
  /** @returns whether there was one */
  revoke(id: string): Promise<boolean>;
};

/**
 * Uses the tokens of the configured database: through the process that serves it where that is an embedded one, which only
 * one process can open, and otherwise by the database itself.
 */
export async function withTokenStore(flags: ConfigFlags, use: (store: TokenStore) => Promise<void>): Promise<void> {
  const { connection, embeddedPath } = loadConfig(flags).config.placementDatabase;
  const socket = connection === undefined ? operatorSocket(embeddedPath) : undefined;
  if (socket === undefined) return useDatabase(flags, use);
  let isFirst = true;
  for (const endMs = performance.now() + openWithinMs; ; await setTimeout(200)) {
    const served = await servedStore(socket);
    if (served !== undefined) return use(served);
    try {
      return await useDatabase(flags, use, isFirst);
    } catch (error) {
      if (!(error instanceof FolderInUse)) throw error;
      isFirst = false;
      if (performance.now() > endMs) {
        throw new Error(
          `${error.message} If it is the service, which takes this command when it has started, try again a little later.`,
          { cause: error },
        );
      }
    }
  }
}

/** How long to wait for a process that has the embedded database open, and may be starting or ending, before this is an error. */
const openWithinMs = 10_000;

const useDatabase = (flags: ConfigFlags, use: (store: TokenStore) => Promise<void>, warns = true): Promise<void> => {
  const useStore = (database: Database) =>
    use({
      create: (wanted) => issueToken(database, wanted),
      list: () =>
        Array.fromAsync(
          allPages(async (page) => (await listTokens(database, page)).slice(0, page.limit).map(showToken)),
        ),
      revoke: (id) => deleteToken(database, id),
    });
  return withCurrentDatabase(flags, useStore, { warns });
};

/**
 * The tokens through the process that serves an embedded database; undefined if none serves it. The modules are imported only here: they
 * take long to load, and other commands do not need them.
 */
async function servedStore(socket: string): Promise<TokenStore | undefined> {
  const { ApiError, connect, isNotFound } = await import('../client/index.ts');
  const { socketFetch } = await import('../cli/socket_fetch.ts');
  const { serverVersion, tokens } = connect({
    endpoint: 'http://localhost',
    fetch: socketFetch(socket, `the process that serves the embedded database, at ${socket}`),
    auth: { headers: async () => ({}), refused: () => false },
    version: '2.7',
    // The user interrupts the command. The text about a deadline is for programs.
    deadlineMs: Number.POSITIVE_INFINITY,
    attempts: 1,
  });
  const refused = (error: unknown): never => {
    if (!(error instanceof ApiError)) throw error;
    throw new Error(
      `The process that serves the embedded database refuses ${error.requestId ?? 'it'}: ${error.message}`,
      { cause: error },
    );
  };
  const isServed = await serverVersion().then(
    () => true,
    () => false,
  );
  if (!isServed) return undefined;
  return {
    create: async ({ userId, projectId, roles, seconds }) => {
      const wanted = { user_id: userId, project_id: projectId, roles, expires_in: seconds };
      const { token, ...shown } = await tokens.create(wanted).catch(refused);
      return { text: token, shown };
    },
    list: () => Array.fromAsync(tokens.list()).catch(refused),
    revoke: (id) =>
      tokens.delete(id).then(
        () => true,
        (error: unknown) => (isNotFound(error) ? false : refused(error)),
      ),
  };
}
