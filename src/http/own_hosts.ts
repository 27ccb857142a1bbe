import net, { isIPv6 } from 'node:net';
import type { MiddlewareHandler } from 'hono';
import type { Config } from '../config/config.ts';
import { ApiError } from '../request/errors.ts';
import { Cache } from '../text/cache.ts';
import type { HonoEnv } from './exchange.ts';

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
  const remembered = new Cache<string, true>(maxRemembered);
  return async function onlyOwnHosts(c, next) {
    const header = c.req.raw.headers.get('host');
    // Browsers always send a host. A request without a host, such as a health check by HTTP/1.0, is for the address that it came to.
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
      remembered.set(header, true);
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

/** A host and a port as RFC 3986 has them, in ASCII: an IPv6 address, with or without a zone, or a name or an IPv4 address. */
const hostAndPort = /^(?:\[([\da-f:.]+)(?:%[\w.~%-]+)?\]|([\w.~!$&'()*+,;=%-]+))(:\d*)?$/i;

/**
 * The host of a Host header, and its port if it has one, in the only form that a URL has for it: an IPv6 address in its shortest form
 * and without a zone, a name in small letters, and neither an empty port nor the usual one of the scheme.
 *
 * @returns undefined if the header is no host
 */
export function hostInUrl(header: string, scheme: 'http' | 'https'): string | undefined {
  const [, address, name, port = ''] = hostAndPort.exec(header) ?? [];
  const host = address === undefined ? name : `[${address}]`;
  return host === undefined ? undefined : (URL.parse(`${scheme}://${host}${port}`)?.host ?? undefined);
}

const loopback = new net.BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether a host in a configuration or a URL is an address or a name by which a machine reaches only itself. */
export function isLoopback(host: string): boolean {
  const family = net.isIP(host);
  if (family !== 0) return loopback.check(host, family === 6 ? 'ipv6' : 'ipv4');
  const name = host.toLowerCase();
  return name === 'localhost' || name.endsWith('.localhost');
}

/**
 * The network of a client, by which clients that take turns are distinguished: its IPv4 address, or the first half of its IPv6 address.
 * Mostly one client has all IPv6 addresses with the same first half.
 *
 * @param client as the connection or a proxy has it: `10.1.2.3`, `::ffff:10.1.2.3`, `10.1.2.3:4711`, `[2001:db8::1]:4711`
 */
export function networkOf(client: string | undefined): string {
  const [, version4] = /^(\d+\.\d+\.\d+\.\d+)(?::\d+)?$/.exec(client ?? '') ?? [];
  if (version4 !== undefined) return version4;
  const [, address = ''] = /^\[?([^\]%]*)/.exec(client ?? '') ?? [];
  if (!net.isIPv6(address)) return client ?? '';
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [before = '', after] = (URL.parse(`http://[${address}]`)?.hostname ?? '').slice(1, -1).split('::');
  const first = before === '' ? [] : before.split(':');
  const last = after === undefined || after === '' ? [] : after.split(':');
  const zeros = after === undefined ? 0 : 8 - first.length - last.length;
  return `${[...first, ...Array.from({ length: zeros }, () => '0'), ...last].slice(0, 4).join(':')}::/64`;
}

/** Whether the console is served: as configured, or by default where noauth2 serves a loopback address. */
export const servesConsole = ({ api, console }: Pick<Config, 'api' | 'console'>): boolean =>
  console.enabled ?? (api.authStrategy === 'noauth2' && isLoopback(api.host));
