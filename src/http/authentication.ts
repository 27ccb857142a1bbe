import type { MiddlewareHandler } from 'hono';
import type { Keystone } from '../keystone/authenticate.ts';
import type { Exchange, HonoEnv } from './exchange.ts';
import { noauthIdentity } from './noauth.ts';
import { authenticationRequired, keystoneUnavailable, unauthorized } from './unauthorized.ts';

/** Finds out who a request is from, or answers it. `GET /` and the empty path need no token: clients discover versions there. */
export type Authentication = MiddlewareHandler<HonoEnv>;

const isOpen = ({ api, path }: Exchange): boolean => api.openPaths.includes(path);

/** `auth_strategy = noauth2` */
export const withoutKeystone: Authentication = async function withoutKeystone(c, next) {
  const { exchange } = c.var;
  if (!isOpen(exchange)) {
    const identity = noauthIdentity(c.req.raw.headers);
    if (identity === undefined) return unauthorized(exchange.accept);
    exchange.identity = identity;
  }
  await next();
  return undefined;
};

/**
 * `auth_strategy = keystone`. Of the headers it reads those with tokens only, and nobody behind it reads any about identity:
 * what a client says there about itself has no effect.
 *
 * @param options.wwwAuthenticateUri where those without a valid token are told to get one.
 * @param options.delayed whether the request is refused here or only behind the middleware, which shows in the answer.
 */
export const byKeystone = (
  keystone: Keystone,
  options: { readonly wwwAuthenticateUri: string; readonly delayed: boolean },
): Authentication =>
  async function byKeystone(c, next) {
    const { exchange } = c.var;
    if (!isOpen(exchange)) {
      const { method, headers } = c.req.raw;
      const access = { method, path: exchange.prefix + encodeURI(exchange.path) };
      const outcome = await keystone.authenticate(headers, access);
      if (outcome === 'Keystone is unavailable') return keystoneUnavailable(exchange.accept);
      if (outcome === 'unauthorized') {
        const response = options.delayed ? unauthorized(exchange.accept) : authenticationRequired();
        response.headers.set('www-authenticate', `Keystone uri="${options.wwwAuthenticateUri}"`);
        return response;
      }
      exchange.identity = outcome;
    }
    await next();
    return undefined;
  };
