import type { PlacementService } from '../../src/service.ts';
import type { ConfigOverrides } from '../services.ts';

/** The registry of services is served. */
export const withRegistry: ConfigOverrides = { compute: { enabled: true } };

export type Reply = { readonly status: number; readonly headers: Headers; readonly json: unknown };

/** A request to the service in this process, as the administrator. */
export async function ask(
  { app }: Pick<PlacementService, 'app'>,
  version: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Reply> {
  const response = await app.request(path, {
    method,
    headers: { 'x-auth-token': 'admin', 'openstack-api-version': version, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, json: text === '' ? undefined : JSON.parse(text) };
}

/** What is in an answer, by its path; undefined where there is nothing. */
export function at(json: unknown, ...path: readonly (string | number)[]): unknown {
  let found = json;
  for (const key of path) {
    if (typeof found !== 'object' || found === null) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[key]; // an object or an array, whose keys these are
  }
  return found;
}
