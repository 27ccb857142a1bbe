import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KeystoneSettings } from '../../src/access/keystone/settings.ts';

/** A token as Keystone describes it. Missing fields get ordinary values. */
export type SomeToken = {
  readonly user?: string;
  readonly roles?: readonly string[];
  readonly project?: string;
  readonly domain?: string;
  readonly system?: boolean;
  /** Seconds from now. Negative for an expired token. */
  readonly lifetime?: number;
  readonly accessRules?: readonly { readonly method: string; readonly path: string; readonly service: string }[];
  readonly isAdminProject?: boolean;
};

type Issued = SomeToken & { readonly expiresAt: number };

/** The behaviour of the stand-in from now on. */
export type Behaviour = {
  password: string;
  /** How the service user must name its domain, and that of its project. */
  domain: object;
  /** The delay before each answer, in milliseconds. */
  delayMs: number;
  /** If set, every answer has this status and text. */
  broken: { readonly status: number; readonly text: string } | undefined;
  /** How long tokens of the service user are valid, in seconds. */
  ownLifetime: number;
  /** Whether the service user has a role in the system scope. */
  isInSystem: boolean;
  /** By path, what a token of the system scope is shown. */
  shown: Readonly<Record<string, unknown>>;
};

/** The part of Keystone's API that services use, over real HTTP, with its rules. */
export type StandIn = {
  /** For `[keystone_authtoken] auth_url`, without the version. */
  readonly url: string;
  readonly behaviour: Behaviour;
  /** All requests since the last call, as `GET valid-token` or `POST`. */
  requests(): readonly string[];
  /** Issues a token, and returns it. */
  issue(token?: SomeToken): string;
  revoke(token: string): void;
  /** Changes the roles of the user of a token. */
  grant(token: string, roles: readonly string[]): void;
  /** The tokens of the service user. */
  ownTokens(): readonly string[];
  /** Revokes all tokens of the service user. */
  revokeOwn(): void;
  down(): Promise<void>;
  up(): Promise<void>;
};

export const servicePassword = 'stand-in-password';

/** The settings of a service that uses the stand-in. */
export const settingsFor = (standIn: Pick<StandIn, 'url'>): Partial<KeystoneSettings> => ({
  authUrl: standIn.url,
  wwwAuthenticateUri: 'http://keystone.example.com:5000',
  username: 'placement',
  password: servicePassword,
  userDomainName: 'Default',
  projectName: 'service',
  projectDomainName: 'Default',
  httpRequestMaxRetries: 0,
});

/** Starts a stand-in on a free port of 127.0.0.1, and stops it after the call. */
export async function withStandIn<T>(
  use: (standIn: StandIn) => Promise<T>,
  tls?: { readonly cert: string; readonly key: string },
): Promise<T> {
  const behaviour: Behaviour = {
    password: servicePassword,
    domain: { name: 'Default' },
    delayMs: 0,
    broken: undefined,
    ownLifetime: 3600,
    isInSystem: false,
    shown: {},
  };
  const issued = new Map<string, Issued>();
  const own = new Map<string, number>();
  let log: string[] = [];

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer); // no encoding is set
    const { method = '', url = '', headers } = request;
    const subject = String(headers['x-subject-token'] ?? '');
    log.push(subject === '' ? method : `${method} ${subject}`);
    if (behaviour.delayMs > 0) await sleep(behaviour.delayMs, undefined, { ref: false });
    const { pathname, searchParams } = new URL(url, 'http://stand-in');
    const respond = (status: number, json: unknown, more: Record<string, string> = {}): void => {
      response.writeHead(status, { 'content-type': 'application/json', ...more }).end(JSON.stringify(json));
    };
    if (behaviour.broken !== undefined) {
      response.writeHead(behaviour.broken.status).end(behaviour.broken.text);
    } else if (Object.hasOwn(behaviour.shown, pathname)) {
      const isAllowed = String(headers['x-auth-token']).startsWith('system-');
      respond(isAllowed ? 200 : 403, isAllowed ? behaviour.shown[pathname] : { error: { code: 403 } });
    } else if (pathname !== '/v3/auth/tokens') {
      respond(404, { error: { code: 404 } });
    } else if (method === 'POST') {
      const scope = scopeOf(JSON.parse(Buffer.concat(chunks).toString()), behaviour);
      if (scope === undefined) {
        respond(401, { error: { code: 401, message: 'The request you have made requires authentication.' } });
        return;
      }
      const token = `${scope}-${randomUUID()}`;
      const expiresAt = Date.now() + behaviour.ownLifetime * 1000;
      own.set(token, expiresAt);
      respond(201, { token: { expires_at: new Date(expiresAt).toISOString() } }, { 'x-subject-token': token });
    } else if ((own.get(String(headers['x-auth-token'])) ?? 0) <= Date.now()) {
      respond(401, { error: { code: 401 } });
    } else {
      const token = issued.get(subject);
      const isKnown =
        token !== undefined && (token.expiresAt > Date.now() || searchParams.get('allow_expired') === '1');
      const mayAsk = token?.accessRules === undefined || headers['openstack-identity-access-rules'] === '1';
      if (isKnown && mayAsk) respond(200, describe(token, !searchParams.has('nocatalog')));
      else respond(404, { error: { code: 404 } });
    }
  }

  const sockets = new Set<Socket>();
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    answer(request, response).catch((error) => response.destroy(error));
  };
  const server = tls === undefined ? http.createServer(listener) : https.createServer(tls, listener);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const listen = async (port: number): Promise<void> => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening'); // throws where the server cannot listen
  };
  await listen(0);
  const { port } = server.address() as AddressInfo; // a TCP server has one
  const down = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });

  try {
    return await use({
      url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
      behaviour,
      requests: () => {
        const requests = log;
        log = [];
        return requests;
      },
      issue: (token = {}) => {
        const name = `token-${randomUUID()}`;
        issued.set(name, { ...token, expiresAt: Date.now() + (token.lifetime ?? 3600) * 1000 });
        return name;
      },
      revoke: (token) => void issued.delete(token),
      grant: (token, roles) => {
        const known = issued.get(token);
        if (known === undefined) throw new Error(`There is no token ${token}.`);
        issued.set(token, { ...known, roles });
      },
      ownTokens: () => [...own.keys()],
      revokeOwn: () => own.clear(),
      down,
      up: () => listen(port),
    });
  } finally {
    if (server.listening) await down();
  }
}

const defaultDomain = { id: 'default', name: 'Default' };

function describe({ user = 'u1', roles = [], project, domain, system, ...token }: Issued, catalog: boolean): unknown {
  return {
    token: {
      methods: ['password'],
      user: { id: user, name: user, domain: defaultDomain },
      ...(project === undefined ? {} : { project: { id: project, name: project, domain: defaultDomain } }),
      ...(domain === undefined ? {} : { domain: { id: domain, name: domain } }),
      ...(system ? { system: { all: true } } : {}),
      roles: roles.map((name) => ({ id: name, name })),
      expires_at: new Date(token.expiresAt).toISOString().replace('Z', '000Z'),
      ...(token.isAdminProject === undefined ? {} : { is_admin_project: token.isAdminProject }),
      ...(catalog ? { catalog: [{ type: 'identity' }, { type: 'placement' }] } : {}),
      ...(token.accessRules === undefined ? {} : { application_credential: { access_rules: token.accessRules } }),
    },
  };
}

/** What a token is for that the service user asks for, with the complete names of user and project. */
function scopeOf(
  { auth }: { readonly auth: unknown },
  { password, domain, isInSystem }: Behaviour,
): 'own' | 'system' | undefined {
  const identity = { methods: ['password'], password: { user: { name: 'placement', domain, password } } };
  const isFor = (scope: object) => JSON.stringify(auth) === JSON.stringify({ identity, scope });
  if (isFor({ project: { name: 'service', domain } })) return 'own';
  return isInSystem && isFor({ system: { all: true } }) ? 'system' : undefined;
}
