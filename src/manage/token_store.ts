import { randomUUID } from 'node:crypto';
import http from 'node:http';
import * as v from 'valibot';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { createToken, deleteToken, listTokens, type TokenRow } from '../../db/statements/tokens.ts';
import { makeToken } from '../access/tokens/token_text.ts';
import { operatorSocket } from '../http/server/operator_socket.ts';
import { since } from '../placement/microversions.ts';
import { versionText } from '../placement/versions.ts';
import { type ConfigFlags, loadConfig } from '../start/command_line.ts';
import { withConfiguredDatabase } from './configured_database.ts';
import { schemaProblem } from './upgrade_checks.ts';

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
export type ShownToken = v.InferOutput<typeof shownToken>;

/** Whom a token is for, and for how long. */
export type WantedToken = {
  readonly userId: string;
  readonly projectId: string;
  readonly roles: readonly string[];
  /** Undefined for a token that never ends. */
  readonly seconds: number | undefined;
};

/** The tokens of the configured database. */
export type TokenStore = {
  create(wanted: WantedToken): Promise<{ readonly text: string; readonly shown: ShownToken }>;
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
  if (socket !== undefined && (await isServed(socket))) return use(throughService(socket));
  return withConfiguredDatabase(flags, async (database) => {
    if (database.engine === 'embedded') await migrateToLatest(database);
    else {
      const schema = await schemaProblem(database);
      if (schema !== undefined && schema.is !== 'newer') throw new Error(schema.problem);
    }
    await use({
      create: async (wanted) => {
        const { text, hash, prefix } = makeToken();
        const row = await createToken(database, { ...wanted, uuid: randomUUID(), hash, prefix });
        return { text, shown: shownOf(row) };
      },
      list: async () => {
        const all: ShownToken[] = [];
        for (let marker: string | undefined; ; ) {
          const rows = await listTokens(database, { marker, limit: pageSize });
          all.push(...rows.slice(0, pageSize).map(shownOf));
          if (rows.length <= pageSize) return all;
          marker = all.at(-1)?.id;
        }
      },
      revoke: (id) => deleteToken(database, id),
    });
  });
}

const pageSize = 1000;

const shownOf = ({ uuid, prefix, userId, projectId, roles, created, expires, used }: TokenRow): ShownToken => ({
  id: uuid,
  prefix,
  user_id: userId,
  project_id: projectId,
  roles: [...roles],
  created_at: created.toISOString(),
  expires_at: expires?.toISOString() ?? null,
  used_at: used?.toISOString() ?? null,
});

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
  const text = body === undefined ? '' : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const headers = {
      host: 'localhost',
      'openstack-api-version': `placement ${versionText(since.teams)}`,
      ...(text === '' ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
    };
    const request = http.request({ socketPath, method, path, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
      );
    });
    request.on('error', reject);
    request.end(text);
  });
}
