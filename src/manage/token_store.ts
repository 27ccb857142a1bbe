import http from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import * as v from 'valibot';
import type { Database } from '../../db/engine/connect.ts';
import { FolderInUse } from '../../db/engine/failures.ts';
import { deleteToken, listTokens } from '../../db/statements/tokens.ts';
import {
  type IssuedToken,
  issueToken,
  type ShownToken,
  showToken,
  type WantedToken,
} from '../access/tokens/kept_tokens.ts';
import { operatorSocket } from '../http/server/operator_socket.ts';
import { since } from '../placement/microversions.ts';
import { versionText } from '../placement/versions.ts';
import { type ConfigFlags, loadConfig } from '../start/config_flags.ts';
import { withCurrentDatabase } from './configured_database.ts';

/** A token as answers of the API show it. */
const shownToken = v.object({
  id: v.string(),
  prefix: v.string(),
  user_id: v.string(),
  project_id: v.string(),
  roles: v.array(v.string()),
  created_at: v.string(),
  expires_at: v.nullable(v.string()),
  used_at: v.nullable(v.string()),
});

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
  for (const endMs = performance.now() + startsWithinMs; ; await setTimeout(200)) {
    if (await isServed(socket)) return use(throughService(socket));
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

/** How long a process may use the embedded database, while it starts or ends, before it is told that it does. */
const startsWithinMs = 10_000;

const useDatabase = (flags: ConfigFlags, use: (store: TokenStore) => Promise<void>, warns = true): Promise<void> => {
  const useStore = (database: Database) =>
    use({
      create: (wanted) => issueToken(database, wanted),
      list: async () => {
        const all: ShownToken[] = [];
        for (let marker: string | undefined; ; ) {
          const rows = await listTokens(database, { marker, limit: pageSize });
          all.push(...rows.slice(0, pageSize).map(showToken));
          if (rows.length <= pageSize) return all;
          marker = all.at(-1)?.id;
        }
      },
      revoke: (id) => deleteToken(database, id),
    });
  return withCurrentDatabase(flags, useStore, { warns });
};

const pageSize = 1000;

const isServed = (socket: string): Promise<boolean> =>
  ask(socket, 'GET', '/').then(
    ({ status }) => status === 200,
    () => false,
  );

const throughService = (socket: string): TokenStore => ({
  create: async ({ userId, projectId, roles, seconds }) => {
    const body = {
      user_id: userId,
      project_id: projectId,
      roles,
      ...(seconds === undefined ? {} : { expires_in: seconds }),
    };
    const { token, ...shown } = v.parse(
      v.object({ ...shownToken.entries, token: v.string() }),
      await answered(ask(socket, 'POST', '/tokens', body)),
    );
    return { text: token, shown };
  },
  list: async () => {
    const all: ShownToken[] = [];
    for (let marker = ''; ; ) {
      const { tokens } = v.parse(
        v.object({ tokens: v.array(shownToken) }),
        await answered(ask(socket, 'GET', `/tokens?limit=${pageSize}${marker}`)),
      );
      all.push(...tokens);
      if (tokens.length < pageSize) return all;
      marker = `&marker=${all.at(-1)?.id}`;
    }
  },
  revoke: async (id) => {
    const reply = await ask(socket, 'DELETE', `/tokens/${encodeURIComponent(id)}`);
    if (reply.status === 404) return false;
    await answered(Promise.resolve(reply));
    return true;
  },
});

type Reply = { readonly status: number; readonly text: string };

/** The body of a success. @throws Error with the sentence of the service */
async function answered(reply: Promise<Reply>): Promise<unknown> {
  const { status, text } = await reply;
  if (status >= 400) throw new Error(`The process that serves the embedded database answers ${status}: ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}

function ask(socketPath: string, method: string, path: string, body?: unknown): Promise<Reply> {
  const sent = body === undefined ? '' : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const headers = {
      host: 'localhost',
      'openstack-api-version': `placement ${versionText(since.teams)}`,
      ...(sent === '' ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(sent) }),
    };
    const request = http.request({ socketPath, method, path, headers }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, text: body }), reject);
    });
    request.on('error', reject);
    request.end(sent);
  });
}
