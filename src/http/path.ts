import type { IncomingMessage } from 'node:http';

/** What of a request's target names the resource, and what asks about it. */
export type Target = {
  /** The decoded path. */
  readonly path: string;
  /** The query string, with its question mark. */
  readonly search: string;
};

/**
 * The target of a request as it was sent. The URL of a Request has been normalised (`/%2e%2e/` is gone), so behind a socket
 * it is taken from the request line.
 */
export function targetOf(url: string, incoming: IncomingMessage | undefined): Target {
  const raw = incoming?.url?.startsWith('/') ? incoming.url : url.slice(pathStart(url));
  const end = raw.search(/[?#]/);
  const path = end === -1 ? raw : raw.slice(0, end);
  return { path: decoded(path), search: end === -1 ? '' : raw.slice(end).replace(/#.*$/s, '') };
}

/** Where the path of an absolute URL begins: behind scheme and authority. */
export const pathStart = (url: string): number => {
  const slash = url.indexOf('/', url.indexOf('//') + 2);
  return slash === -1 ? url.length : slash;
};

function decoded(path: string): string {
  if (!path.includes('%')) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/**
 * The path as upstream's router sees it: without one trailing newline. A percent sign that decoding left is escaped again,
 * since Hono decodes the parts it takes out.
 */
export const routedPath = ({ path }: Target): string => path.replace(/\n$/, '').replaceAll('%', '%25') || '/';

/** The request as Node.js has it, where there is a socket: node-server puts it into Hono's environment. */
export const incomingOf = (env: unknown): IncomingMessage | undefined =>
  typeof env === 'object' && env !== null && 'incoming' in env ? (env.incoming as IncomingMessage) : undefined; // by node-server's HttpBindings
