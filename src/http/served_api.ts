import type { BoundEndpoint } from '../rest/endpoint.ts';
import type { Service } from '../rest/versions.ts';
import type { Dialect } from './dialect.ts';

/** One of the APIs that the app serves. */
export type ServedApi = {
  /** The beginning of its paths, `/compute`; empty for the API that has all other paths. */
  readonly root: string;
  /** Paths that need no token, so that clients can discover the versions. */
  readonly openPaths: readonly string[];
  readonly endpoints: readonly BoundEndpoint[];
  /** The versions that are offered. */
  readonly service: Service;
  readonly dialect: Dialect;
};

/** The API of a path; the last API has all paths that belong to no other. */
export function apiOf(apis: readonly [...ServedApi[], ServedApi], path: string): ServedApi {
  const [last] = apis.slice(-1);
  const found = apis.find(({ root }) => path === root || path.startsWith(`${root}/`)) ?? last;
  if (found === undefined) throw new Error('No API is served.');
  return found;
}
