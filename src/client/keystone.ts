import type { Auth } from './auth.ts';
import { AuthError, ConnectionError } from './errors.ts';
import { refusalOf } from './refusal.ts';
import { checkedAddress, type Fetch, send, type WireAnswer } from './send.ts';

/** The services of a Keystone token, with their endpoints. */
type Catalog = readonly {
  readonly type: string;
  readonly endpoints: readonly {
    readonly interface: string;
    readonly url: string;
    readonly region?: string | null;
    readonly region_id?: string | null;
  }[];
}[];

/** Which of several endpoints is used. Default: public, in any region. */
type EndpointChoice = { readonly interface?: string | undefined; readonly region?: string | undefined };

/** The URL of the placement service. @throws AuthError if the catalog has no endpoint that matches */
function placementIn(catalog: Catalog, choice: EndpointChoice): string {
  const wanted = choice.interface ?? 'public';
  if (catalog.length === 0) {
    throw new AuthError(
      'The token has no catalog, because it is not for a project. Name a project, or give the endpoint.',
    );
  }
  const endpoints = catalog.filter(({ type }) => type === 'placement').flatMap((service) => service.endpoints);
  if (endpoints.length === 0) {
    const types = [...new Set(catalog.map(({ type }) => type))].join(', ');
    throw new AuthError(
      `The catalog has no service of type placement, only ${types}. Register it, or give the endpoint.`,
    );
  }
  const regionOf = (endpoint: (typeof endpoints)[number]) => endpoint.region_id ?? endpoint.region ?? undefined;
  const found = endpoints.find(
    (endpoint) =>
      endpoint.interface === wanted && (choice.region === undefined || regionOf(endpoint) === choice.region),
  );
  if (found !== undefined) return found.url;
  const there = endpoints.map((endpoint) => `${endpoint.interface} in ${regionOf(endpoint) ?? 'no region'}`).join(', ');
  const where = choice.region === undefined ? '' : ` in region ${choice.region}`;
  throw new AuthError(
    `The catalog has no ${wanted} endpoint of placement${where}, only: ${there}. Choose one of these.`,
  );
}

/**
 * The credentials for a login. A domain is named by id or name. A user name without a domain is in the domain
 * `Default`.
 */
export type Credentials =
  | {
      readonly method: 'password';
      readonly user: { readonly id?: string; readonly name?: string } & DomainOf;
      readonly password: string;
    }
  | { readonly method: 'token'; readonly token: string }
  | { readonly method: 'application credential'; readonly id: string; readonly secret: string };

type DomainOf = { readonly domainId?: string | undefined; readonly domainName?: string | undefined };

/** The scope of the token. Default: the default project of the user. An application credential has a fixed scope. */
export type Scope =
  | { readonly project: { readonly id?: string; readonly name?: string } & DomainOf }
  | { readonly domain: { readonly id?: string; readonly name?: string } }
  | { readonly system: 'all' };

/** How to log in, and which endpoint of the catalog to use. */
export type KeystoneOptions = {
  /** Keystone's address, with or without `/v3`. */
  readonly authUrl: string;
  readonly credentials: Credentials;
  readonly scope?: Scope | undefined;
  /** Which endpoint of the catalog is used. Default: public, in any region. */
  readonly interface?: 'public' | 'internal' | 'admin' | undefined;
  readonly region?: string | undefined;
  /** Default: the global one. */
  readonly fetch?: Fetch | undefined;
};

type Session = { readonly token: string; readonly expiresAtMs: number; readonly catalog: Catalog };

/** A token is renewed this many milliseconds before it expires, so that it cannot expire while a request is sent. */
const renewalMs = 60_000;

/**
 * A login fails after this many milliseconds. Several calls may wait for one login, so the signal of a call does not
 * end it.
 */
const loginMs = 30_000;

/**
 * Logs in to Keystone (v3) when a token is needed, renews the token in time, and finds the service in the catalog.
 *
 * @throws TypeError for an authUrl that is no URL
 */
export function keystone(options: KeystoneOptions): Auth {
  checkedAddress('authUrl', options.authUrl);
  let session: Promise<Session> | undefined;
  /** The token of the session, once the login is done. */
  let token: string | undefined;
  const start = (): Promise<Session> => {
    const started = logIn(options);
    session = started;
    token = undefined;
    started.then(
      (done) => {
        if (session === started) token = done.token;
      },
      () => {
        if (session === started) session = undefined;
      },
    );
    return started;
  };
  const current = async (signal: AbortSignal): Promise<Session> => {
    const asked = session ?? start();
    const found = await unlessAborted(asked, signal);
    if (found.expiresAtMs - renewalMs > Date.now()) return found;
    // If several calls find the token expired at the same time, the first call logs in for all of them.
    const renewed = session === undefined || session === asked ? start() : session;
    return unlessAborted(renewed, signal);
  };
  return {
    headers: async (signal) => ({ 'X-Auth-Token': (await current(signal)).token }),
    refused: (headers) => {
      // Of many calls with one token, the first that is refused logs in for all of them.
      if (headers['X-Auth-Token'] === token) session = undefined;
      return options.credentials.method !== 'token';
    },
    endpoint: async (signal) => placementIn((await current(signal)).catalog, options),
  };
}

/** @throws AuthError if Keystone refuses the login, ConnectionError if it does not answer */
async function logIn({ authUrl, credentials, scope, fetch = globalThis.fetch }: KeystoneOptions): Promise<Session> {
  const url = `${authUrl.replace(/\/+$/, '').replace(/\/v3$/, '')}/v3/auth/tokens`;
  const body = JSON.stringify({ auth: { identity: identityOf(credentials), ...scopeOf(scope) } });
  const headers = { Accept: 'application/json', 'Content-Type': 'application/json' };
  const signal = AbortSignal.timeout(loginMs);
  let answer: WireAnswer;
  try {
    answer = await send(fetch, { method: 'POST', url, headers, body }, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new ConnectionError(`No answer from Keystone at ${url} within ${loginMs} ms.`, {
      unsent: true,
      cause: error,
    });
  }
  const token = answer.headers.get('x-subject-token');
  if (answer.status !== 201 || token === null) throw refused(url, credentials, answer);
  const told = describedIn(answer.text);
  if (told === undefined) throw noKeystone(url);
  return { token, expiresAtMs: Date.parse(told.expires_at), catalog: told.catalog ?? [] };
}

type Described = { readonly expires_at: string; readonly catalog?: Catalog };

/**
 * The token in an answer of Keystone. A token without a scope has no catalog. Undefined if the answer is not
 * Keystone's.
 */
function describedIn(text: string): Described | undefined {
  try {
    const { token } = JSON.parse(text) as { readonly token?: Partial<Described> }; // by Keystone's API; what is read first is checked
    return typeof token?.expires_at === 'string' ? { ...token, expires_at: token.expires_at } : undefined;
  } catch {
    return undefined;
  }
}

const noKeystone = (url: string): AuthError => new AuthError(`There is no Keystone v3 at ${url}. Check authUrl.`);

function refused(url: string, credentials: Credentials, answer: WireAnswer): AuthError {
  const { detail } = refusalOf(answer);
  if (answer.status === 401) {
    const name =
      credentials.method === 'password' ? (credentials.user.name ?? credentials.user.id) : 'the application credential';
    return new AuthError(
      `Keystone at ${url} refuses the login of ${name}: ${detail} Check user, password, project and their domains.`,
      answer.status,
    );
  }
  if (answer.status < 300 || answer.status === 404) return noKeystone(url);
  return new AuthError(`Keystone at ${url} gave no token (${answer.status}): ${detail}`, answer.status);
}

function identityOf(credentials: Credentials): object {
  switch (credentials.method) {
    case 'password': {
      const { user, password } = credentials;
      return { methods: ['password'], password: { user: { ...named(user), password } } };
    }
    case 'token':
      return { methods: ['token'], token: { id: credentials.token } };
    case 'application credential': {
      const { id, secret } = credentials;
      return { methods: ['application_credential'], application_credential: { id, secret } };
    }
  }
}

function scopeOf(scope: Scope | undefined): object {
  if (scope === undefined) return {};
  if ('system' in scope) return { scope: { system: { all: true } } };
  if ('domain' in scope) return { scope: { domain: scope.domain } };
  return { scope: { project: named(scope.project) } };
}

/** Refers to a user or project: an id is enough, but a name needs a domain. */
function named({
  id,
  name,
  domainId,
  domainName,
}: { readonly id?: string; readonly name?: string } & DomainOf): object {
  if (id !== undefined) return { id };
  if (domainId !== undefined) return { name, domain: { id: domainId } };
  return { name, domain: { name: domainName ?? 'Default' } };
}

/** Waits for a promise that other calls may wait for, too. The signal ends only this wait, not the work behind it. */
async function unlessAborted<Result>(thing: Promise<Result>, signal: AbortSignal): Promise<Result> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    thing.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
