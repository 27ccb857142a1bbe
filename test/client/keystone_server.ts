import type { IncomingMessage, ServerResponse } from 'node:http';
import { startFront, type TestServer } from './servers.ts';

/** The answers of the server to logins. */
export type KeystoneData = {
  /** The URL of placement in the catalog. */
  readonly placementUrl: string;
  /** The tokens that it issues, one after the other. The last one is repeated. */
  readonly tokens?: readonly string[];
  /** How long the tokens are valid, in milliseconds. */
  readonly validMs?: number;
};

export type KeystoneServer = TestServer & {
  /** The bodies of the logins. */
  readonly logins: readonly unknown[];
};

/**
 * The part of Keystone v3 that a client needs, by its API reference: POST /v3/auth/tokens for user `nova` with password `secret`,
 * for the token `unscoped` and for the application credential `id` with secret `secret`.
 */
export async function startKeystone(data: KeystoneData): Promise<KeystoneServer> {
  const { tokens = ['admin'], validMs = 3_600_000 } = data;
  const logins: unknown[] = [];
  const server = await startFront(async (incoming, response) => {
    if (incoming.method !== 'POST' || incoming.url !== '/v3/auth/tokens') {
      fail(response, 404, 'Not Found', 'The resource could not be found.');
      return;
    }
    const body = (await readJson(incoming)) as LoginBody; // what the test sends is under test by what comes back
    logins.push(body);
    if (!isKnown(body)) {
      fail(response, 401, 'Unauthorized', 'The request you have made requires authentication.');
      return;
    }
    const token = tokens[Math.min(logins.length, tokens.length) - 1] ?? '';
    const isScoped = body.auth.scope !== undefined || body.auth.identity.application_credential !== undefined;
    response.writeHead(201, { 'Content-Type': 'application/json', 'X-Subject-Token': token });
    response.end(
      JSON.stringify({
        token: {
          methods: body.auth.identity.methods,
          expires_at: new Date(Date.now() + validMs).toISOString(),
          ...(isScoped ? { catalog: catalogOf(data.placementUrl) } : {}),
        },
      }),
    );
  });
  return { ...server, logins };
}

type LoginBody = {
  readonly auth: {
    readonly identity: {
      readonly methods: readonly string[];
      readonly password?: {
        readonly user: { readonly name?: string; readonly id?: string; readonly password: string };
      };
      readonly token?: { readonly id: string };
      readonly application_credential?: { readonly id: string; readonly secret: string };
    };
    readonly scope?: unknown;
  };
};

function isKnown({ auth: { identity } }: LoginBody): boolean {
  switch (identity.methods[0]) {
    case 'password':
      return (
        (identity.password?.user.name ?? identity.password?.user.id) === 'nova' &&
        identity.password?.user.password === 'secret'
      );
    case 'token':
      return identity.token?.id === 'unscoped';
    case 'application_credential':
      return identity.application_credential?.id === 'id' && identity.application_credential.secret === 'secret';
    default:
      return false;
  }
}

const catalogOf = (placementUrl: string) => [
  { type: 'identity', name: 'keystone', endpoints: [endpoint('public', 'RegionOne', 'http://127.0.0.1:1/v3')] },
  {
    type: 'placement',
    name: 'placement',
    endpoints: [
      endpoint('internal', 'RegionOne', `${placementUrl}/`),
      endpoint('public', 'RegionTwo', 'http://127.0.0.1:9'),
      endpoint('public', 'RegionOne', placementUrl),
    ],
  },
];

const endpoint = (name: string, region: string, url: string) => ({ interface: name, region, region_id: region, url });

function fail(response: ServerResponse, code: number, title: string, message: string): void {
  response.writeHead(code, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify({ error: { code, title, message } }));
}

async function readJson(incoming: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of incoming.setEncoding('utf8')) text += chunk;
  return JSON.parse(text);
}
