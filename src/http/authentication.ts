import type { MiddlewareHandler } from 'hono';
import type { Keystone } from '../access/keystone/authenticate.ts';
import type { Exchange, HonoEnv } from './exchange.ts';
import { goneSignal } from './gone_signal.ts';
import { versionHeader } from './microversion.ts';
import { networkOf } from './network_of.ts';
import { noauthIdentity } from './noauth.ts';
import { authenticationRequired, keystoneBusy, keystoneUnavailable, unauthorized } from './unauthorized.ts';

/**
 * Finds the identity of a request, or refuses the request. `GET /` and the empty path need no token: clients discover
 * versions there.
 */
export type Authentication = MiddlewareHandler<HonoEnv>;

const isOpen = ({ api, path }: Exchange): boolean => api.openPaths.includes(path);

/** Clients of OpenStack ask for JSON or for a version, and get upstream's answer. */
const isProgram = (headers: Headers): boolean =>
  headers.has(versionHeader) || (headers.get('accept') ?? '').includes('application/json');

const missingToken =
  'The header X-Auth-Token is missing. Without Keystone ([api] auth_strategy = noauth2) its value is the user, such as admin.';

/** `auth_strategy = noauth2` */
export const withoutKeystone: Authentication = async function withoutKeystone(c, next) {
  const exchange = c.get('exchange');
  if (!isOpen(exchange)) {
    const identity = noauthIdentity(c.req.raw.headers);
    if (identity === undefined) {
      const { method, headers } = c.req.raw;
      return unauthorized({ method, accept: exchange.accept }, isProgram(headers) ? '' : missingToken);
    }
    exchange.identity = identity;
  }
  await next();
  return undefined;
};

/**
 * `auth_strategy = keystone`. It reads only the headers with tokens, and no later code reads headers about identity:
 * what a client says there about itself has no effect.
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
      const asked = { method, accept: exchange.accept };
      const access = { method, path: exchange.prefix + encodeURI(exchange.path) };
      let signal: AbortSignal | undefined;
      const gone = (): AbortSignal => {
        signal ??= goneSignal(c.env ?? {});
        return signal;
      };
      const caller = { client: networkOf(exchange.sender), gone };
      const refuse = (): Response => {
        const response = options.delayed ? unauthorized(asked) : authenticationRequired();
        response.headers.set('www-authenticate', `Keystone uri="${options.wwwAuthenticateUri}"`);
        return response;
      };
      const outcome = await keystone.authenticate(headers, access, caller);
      if (outcome === 'Keystone is busy') return keystoneBusy(asked);
      if (outcome === 'Keystone is unavailable') return keystoneUnavailable(asked);
      if (outcome === 'unauthorized') return refuse();
      exchange.authenticateAgain = async () => {
        const again = await keystone.authenticateAgain(headers, access, caller);
        if (again === 'unauthorized') return refuse();
        if (typeof again !== 'string') exchange.identity = again;
        return undefined;
      };
      exchange.identity = outcome;
    }
    await next();
    return undefined;
  };
