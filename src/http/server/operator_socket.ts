import path from 'node:path';
import type { Hono } from 'hono';
import type { HonoEnv } from '../exchange.ts';
import { listen } from './listen.ts';

/**
 * The socket in the folder of an embedded database, by which programs of its owner reach the process that serves it: only
 * one process can open the database.
 *
 * @returns the shorter of two names, since that of a socket may have some 100 bytes
 */
export function operatorSocket(embeddedPath: string): string {
  const absolute = path.resolve(embeddedPath, 'operator.sock');
  const relative = path.relative(process.cwd(), absolute);
  return relative.length < absolute.length ? relative : absolute;
}

/**
 * Serves an app that requires no token on such a socket. Only the owner of the process may connect.
 *
 * @returns a function that closes it, as the server of the API is closed
 * @throws Error where the socket cannot be made, such as with too long a name
 */
export async function listenForOperator(app: Hono<HonoEnv>, socket: string): Promise<() => Promise<void>> {
  return (await listen(app, { host: `unix:${socket}`, port: 0, socketMode: '600' })).close;
}
