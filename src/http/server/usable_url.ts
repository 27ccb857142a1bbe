import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { hostInUrl } from '../host.ts';

/** Most Host headers: they are in the form of a URL already. */
const usualHost = /^[a-z0-9._-]+(?::\d+)?$/;

/**
 * Gives a request a host and a path from which node-server can make a URL. It refuses a host in any other form than that of a URL,
 * although others are valid: `[2001:0db8::1]`, or `name:` with an empty port.
 *
 * - A request without a host (HTTP/1.0, and the health checks of load balancers), or with an empty one, is for this server.
 * - `OPTIONS *` asks about the server as a whole (RFC 9110, 9.3.7), as `OPTIONS /` does.
 *
 * The header itself, as `rawHeaders` have it, stays as it was sent.
 */
export function giveUsableUrl(request: IncomingMessage): void {
  const { headers, socket } = request;
  const { host } = headers;
  if (host === undefined || host === '') headers.host = ownHost(socket);
  else if (!usualHost.test(host))
    headers.host = hostInUrl(host, socket instanceof TLSSocket ? 'https' : 'http') ?? host;
  if (request.url === '*' && request.method === 'OPTIONS') request.url = '/';
}

/** The address and port on which the client has reached this server. */
function ownHost({ localAddress = '127.0.0.1', localPort = 0 }: Socket): string {
  const address = localAddress.replace(/^::ffff:(?=[\d.]+$)/i, '').replace(/%.*$/, '');
  return address.includes(':') ? `[${address}]:${localPort}` : `${address}:${localPort}`;
}
