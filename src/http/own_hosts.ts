import type { MiddlewareHandler } from 'hono';
import type { Config } from '../config/config.ts';
import { ApiError } from '../rest/errors.ts';
import type { HonoEnv } from './exchange.ts';
import { isLoopback } from './loopback.ts';

/**
 * Whether a service trusts all programs of its machine and no others. Such a service answers only under some host
 * names.
 */
export const trustsItsMachine = ({ authStrategy, host, allowedHosts }: Config['api']): boolean =>
  authStrategy === 'noauth2' && isLoopback(host) && !allowedHosts.includes('*');

/**
 * How many different Host headers are remembered as good. Clients use few, but may invent any number below `localhost`.
 */
const maxRemembered = 100;

/**
 * Refuses requests that name a host which is neither loopback nor in `[api] allowed_hosts`. The owner of a domain may
 * let its name resolve to 127.0.0.1; browsers then take this service for a part of the page of that domain, and let the
 * page call it. The Host header shows this, since no page can set it. X-Forwarded-Host, which pages can set, does not
 * count.
 */
export function onlyOwnHosts({ allowedHosts }: Config['api']): MiddlewareHandler<HonoEnv> {
  const allowed = new Set(allowedHosts.map((host) => nameOf(host.toLowerCase())));
  const remembered = new Set<string>();
  return async function onlyOwnHosts(c, next) {
    const header = c.req.raw.headers.get('host');
    // It is missing where an app is called without a server; a server refuses such requests.
    if (header !== null && !remembered.has(header)) {
      const name = nameOf(header.toLowerCase());
      if (!isLoopback(name) && !allowed.has(name)) {
        throw new ApiError(
          421,
          `The host ${name} is not one by which this service may be called. It trusts all programs of its machine ` +
            '([api] auth_strategy = noauth2), and so it answers to localhost and to the hosts of [api] allowed_hosts ' +
            'only.',
        );
      }
      if (remembered.size < maxRemembered) remembered.add(header);
    }
    await next();
  };
}

/**
 * The host of `host:port` in small letters, without the brackets of an IPv6 address and the dot at the end of a full
 * name.
 */
const nameOf = (authority: string): string => {
  const [, address, name = authority] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(authority) ?? [];
  return address ?? name.replace(/\.$/, '');
};
