import type { IncomingMessage } from 'node:http';

/** The path and the query string of a request. */
export type Target = {
  /** The decoded path. */
  readonly path: string;
  /** The query string, with its question mark. */
  readonly search: string;
};

/**
 * The target of a request as it was sent. The URL of a Request has been normalised (`/%2e%2e/` is gone), so where there
 * is a socket the target is taken from the request line.
 */
export function targetOf(url: string, incoming: IncomingMessage | undefined): Target {
  const raw = incoming?.url?.startsWith('/') ? incoming.url : url.slice(pathStart(url));
  const end = raw.search(/[?#]/);
  const path = end === -1 ? raw : raw.slice(0, end);
  return { path: decoded(path), search: end === -1 ? '' : raw.slice(end).replace(/#.*$/s, '') };
}

/** The place in an absolute URL where the path begins, after scheme and authority. */
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
 * The path as upstream's router sees it: without one trailing newline. A percent sign that is left after decoding is
 * escaped again, since Hono decodes the parameters of the path.
 */
export const routedPath = ({ path }: Target): string => path.replace(/\n$/, '').replaceAll('%', '%25') || '/';

/** Node.js's request, where there is a socket: node-server puts it into Hono's environment. */
export const incomingOf = (env: unknown): IncomingMessage | undefined =>
  typeof env === 'object' && env !== null && 'incoming' in env
    ? (env.incoming as IncomingMessage) // by node-server's HttpBindings
    : undefined;
