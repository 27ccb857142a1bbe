import type { MiddlewareHandler } from 'hono';
import type { Keystone } from '../access/keystone/authenticate.ts';
import type { Tokens } from '../access/tokens/authenticate.ts';
import { ApiError, tryLater } from '../request/errors.ts';
import { type Identity, noIdentity, type ServiceIdentity } from '../rest/identity.ts';
import { interning } from '../text/cache.ts';
import { takeCommonForm } from './common_form.ts';
import { versionHeader } from './dialect.ts';
import { type Exchange, goneSignal, type HonoEnv } from './exchange.ts';
import { networkOf } from './own_hosts.ts';
import {
  authenticationRequired,
  busyAfterSeconds,
  busyDetail,
  keystoneBusy,
  keystoneUnavailable,
  unauthorized,
  unavailableDetail,
} from './unauthorized.ts';

/**
 * Finds the identity of a request, or refuses the request. `GET /` and the empty path need no token: clients discover
 * versions there.
 */
export type Authentication = MiddlewareHandler<HonoEnv>;

const isOpen = ({ api, path }: Exchange): boolean => api.openPaths.includes(path);

/** Clients of OpenStack request JSON or a version, and get upstream's answer. */
const isProgram = (headers: Headers): boolean =>
  headers.has(versionHeader) || (headers.get('accept') ?? '').includes('application/json');

/**
 * Refuses a request without a valid token in the form of all other errors, at 2.7 and later versions. At OpenStack's versions this refusal
 * has another form, as upstream's middleware writes it.
 *
 * @throws ApiError at such a version
 */
function refuseInCommonForm(exchange: Exchange, requestHeaders: Headers, refusal: ApiError): void {
  if (takeCommonForm(exchange, requestHeaders)) throw refusal;
}

const refusedBy = (detail: string, headers: Readonly<Record<string, string>> = {}): ApiError =>
  new ApiError(401, detail, { headers });

const missingToken =
  'The header X-Auth-Token is missing. Without Keystone ([api] auth_strategy = noauth2) its value is the user, such as admin.';

/** `auth_strategy = noauth2` */
export const withoutKeystone: Authentication = async function withoutKeystone(c, next) {
  const exchange = c.get('exchange');
  if (!isOpen(exchange)) {
    const identity = noauthIdentity(c.req.raw.headers);
    if (identity === undefined) {
      const { method, headers } = c.req.raw;
      refuseInCommonForm(exchange, headers, refusedBy(missingToken));
      return unauthorized({ method, accept: exchange.accept }, isProgram(headers) ? '' : missingToken);
    }
    exchange.identity = identity;
  }
  await next();
  return undefined;
};

const noKeystoneToken = 'The request has no token in X-Auth-Token that Keystone takes for valid.';

/**
 * `auth_strategy = keystone`. It reads only the headers with tokens, and no later code reads headers about identity:
 * these headers of a client have no effect.
 *
 * @param options.wwwAuthenticateUri the address of Keystone in the answer to a request without a valid token.
 * @param options.delayed whether upstream would refuse the request only after its middleware: then the answer has
 *   another form.
 */
export const byKeystone = (
  keystone: Keystone,
  options: { readonly wwwAuthenticateUri: string; readonly delayed: boolean },
): Authentication =>
  async function byKeystone(c, next) {
    const exchange = c.get('exchange');
    if (!isOpen(exchange)) {
      const { method, headers } = c.req.raw;
      const form = { method, accept: exchange.accept };
      const access = { method, path: exchange.prefix + encodeURI(exchange.path) };
      let signal: AbortSignal | undefined;
      const gone = (): AbortSignal => {
        signal ??= goneSignal(c.env ?? {});
        return signal;
      };
      const caller = { client: networkOf(exchange.sender), gone };
      const refuse = (): Response => {
        const challenge = `Keystone uri="${options.wwwAuthenticateUri}"`;
        refuseInCommonForm(exchange, headers, refusedBy(noKeystoneToken, { 'www-authenticate': challenge }));
        const response = options.delayed ? unauthorized(form) : authenticationRequired();
        response.headers.set('www-authenticate', challenge);
        return response;
      };
      const outcome = await keystone.authenticate(headers, access, caller);
      if (outcome === 'Keystone is busy') {
        refuseInCommonForm(exchange, headers, tryLater(busyDetail, busyAfterSeconds));
        return keystoneBusy(form);
      }
      if (outcome === 'Keystone is unavailable') {
        refuseInCommonForm(exchange, headers, new ApiError(503, unavailableDetail));
        return keystoneUnavailable(form);
      }
      if (outcome === 'unauthorized') return refuse();
      exchange.authenticateAgain = async () => {
        const again = await keystone.authenticateAgain(headers, access, caller);
        if (typeof again !== 'string') {
          exchange.identity = again;
          return undefined;
        }
        // While Keystone is unreachable, its last answer holds until the token expires.
        const { expiresAtMs = Number.POSITIVE_INFINITY } = exchange.identity;
        return again === 'unauthorized' || expiresAtMs <= Date.now() ? refuse() : undefined;
      };
      exchange.identity = outcome;
    }
    await next();
    return undefined;
  };

/** For the socket of the operator, which only the owner of the process can use. */
export const asOperator: Authentication = async function asOperator(c, next) {
  c.get('exchange').identity = {
    ...noIdentity,
    userId: 'operator',
    projectId: 'operator',
    roles: ['admin', 'service'],
  };
  await next();
};

const noToken = 'The request has no token. Send it as Authorization: Bearer TOKEN, or as X-Auth-Token: TOKEN.';

const tokenRefused = 'The token is not valid: it is unknown, was revoked, or has ended.';

/** `auth_strategy = tokens`. The client learns that its token is refused (RFC 6750, section 3); only the log says why. */
export const byTokens = (tokens: Tokens): Authentication =>
  async function byTokens(c, next) {
    const exchange = c.get('exchange');
    if (!isOpen(exchange)) {
      const { method, headers } = c.req.raw;
      const refuse = (challenge: string, detail = ''): Response => {
        const challenged = { 'www-authenticate': challenge };
        refuseInCommonForm(exchange, headers, refusedBy(detail || tokenRefused, challenged));
        const response = unauthorized({ method, accept: exchange.accept }, detail);
        response.headers.set('www-authenticate', challenge);
        return response;
      };
      const judged = await tokens.authenticate(headers);
      if (judged === undefined) return refuse('Bearer', noToken);
      if ('refused' in judged) {
        exchange.refused = judged.refused;
        return refuse('Bearer error="invalid_token"');
      }
      exchange.authenticateAgain = async () => {
        const again = await tokens.authenticate(headers);
        if (again === undefined || 'refused' in again) return refuse('Bearer error="invalid_token"');
        exchange.identity = again.identity;
        return undefined;
      };
      exchange.identity = judged.identity;
    }
    await next();
    return undefined;
  };

/**
 * The identity by `auth_strategy = noauth2`, for tests and trusted networks: the token is `user` or `user:project`,
 * whose project defaults to the user, and the headers that Keystone's middleware would set are believed. Without an
 * X-Roles header the user `admin` may do everything: it has the roles admin and service.
 *
 * @returns undefined where there is no token.
 */
function noauthIdentity(headers: Headers): Identity | undefined {
  const token = headers.get('x-auth-token');
  if (token === null) return undefined;
  const header = (name: string): string | undefined => headers.get(name) ?? undefined;
  const colon = token.indexOf(':');
  const userId = colon === -1 ? token : token.slice(0, colon);
  const roles = header('x-roles');
  const systemScope = header('openstack-system-scope') || undefined;
  const ownProject = systemScope === undefined ? token.slice(userId.length + 1) || userId : header('x-tenant-id');
  const identity: Identity = {
    ...noIdentity,
    userId,
    userDomainId: header('x-user-domain-id'),
    projectId: header('x-project-id') ?? ownProject,
    projectDomainId: header('x-project-domain-id'),
    roles: roles === undefined ? (userId === 'admin' ? ['admin', 'service'] : []) : list(roles),
    domainId: header('x-domain-id') || undefined,
    systemScope,
    isAdminProject: (header('x-is-admin-project') ?? 'true').toLowerCase() === 'true',
    service: serviceOf(header),
  };
  return sharedIdentity(JSON.stringify(identity), identity);
}

/** One object for the same headers, as a remembered token has one: the policy remembers what it decided for it. */
const sharedIdentity = interning<Identity>(1_000);

function serviceOf(header: (name: string) => string | undefined): ServiceIdentity | undefined {
  const userId = header('x-service-user-id');
  const roles = header('x-service-roles');
  if (userId === undefined && roles === undefined) return undefined;
  return {
    userId: userId ?? '',
    userDomainId: header('x-service-user-domain-id'),
    projectId: header('x-service-project-id'),
    projectDomainId: header('x-service-project-domain-id'),
    roles: list(roles ?? ''),
  };
}

const list = (text: string): readonly string[] => (text === '' ? [] : text.split(',').map((item) => item.trim()));
