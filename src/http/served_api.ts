import type { Endpoint } from '../api/endpoint.ts';
import type { Parts } from '../api/parts.ts';
import type { Dialect } from './dialect.ts';

/** One API among those that the app serves. */
export type ServedApi = {
  /** What its paths begin with: `/compute`; empty for the one that has all other paths. */
  readonly root: string;
  /** Paths that need no token, so that clients can discover the versions. */
  readonly openPaths: readonly string[];
  readonly endpoints: readonly Endpoint[];
  readonly parts: Parts;
  readonly dialect: Dialect;
};

/** Which API a path belongs to; the last one has those that belong to none. */
export function apiOf(apis: readonly [...ServedApi[], ServedApi], path: string): ServedApi {
  const [last] = apis.slice(-1);
  const found = apis.find(({ root }) => path === root || path.startsWith(`${root}/`)) ?? last;
  if (found === undefined) throw new Error('A list of at least one has no last one.');
  return found;
}
