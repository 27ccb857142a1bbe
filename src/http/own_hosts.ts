import { isIPv6 } from 'node:net';
import type { MiddlewareHandler } from 'hono';
import type { Config } from '../config/config.ts';
import { ApiError } from '../rest/errors.ts';
import type { HonoEnv } from './exchange.ts';
import { hostInUrl } from './host.ts';
import { isLoopback } from './loopback.ts';

/**
 * Whether a service answers only under some host names: it asks for no password, and is reached only by programs of its
 * machine, or the operator lists its names. A container listens on all addresses, also if its port is published on a
 * loopback address only, so there the list decides.
 */
export const checksHosts = ({ authStrategy, host, allowedHosts }: Config['api']): boolean =>
  authStrategy === 'noauth2' && (isLoopback(host) || allowedHosts.length > 0) && !allowedHosts.includes('*');

/**
 * How many different Host headers are remembered as good. Clients use few, but may invent any number below `localhost`.
 */
const maxRemembered = 100;

/**
 * Refuses requests that name a host which is neither loopback nor in `[api] allowed_hosts`. The owner of a domain may
 * let its name resolve to 127.0.0.1; browsers then take this service for a part of the page of that domain, and let the
 * page call it. The Host header shows this, since no page can set it. X-Forwarded-Host, which pages can set, does not
 * count.
 *
 * @param onRefused called for each request that is refused
 */
export function onlyOwnHosts({ allowedHosts }: Config['api'], onRefused: () => void): MiddlewareHandler<HonoEnv> {
  const allowed = new Set(allowedHosts.map(nameOf));
  const remembered = new Set<string>();
  return async function onlyOwnHosts(c, next) {
    const header = c.req.raw.headers.get('host');
    // Browsers always send one. A request without it, such as a health check by HTTP/1.0, is for the address that it came to.
    if (header !== null && header !== '' && !remembered.has(header)) {
      const name = nameOf(header);
      if (!isLoopback(name) && !allowed.has(name)) {
        onRefused();
        throw new ApiError(
          421,
          `The host ${name} is not one by which this service may be called. It asks for no password ` +
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
 * The host of `host:port` in small letters, without the brackets of an IPv6 address, which is in its shortest form, and the dot at the
 * end of a full name. An option may have an IPv6 address without brackets.
 */
function nameOf(authority: string): string {
  const inUrl = hostInUrl(isIPv6(authority) ? `[${authority}]` : authority, 'http') ?? authority.toLowerCase();
  const [, address, name = inUrl] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(inUrl) ?? [];
  return address ?? name.replace(/\.$/, '');
}
