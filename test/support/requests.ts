import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { placementService } from '../../src/placement/microversions.ts';
import { newestOf, versionText } from '../../src/placement/versions.ts';
import type { PlacementService } from '../../src/start/service.ts';

/** The newest microversion of the service, as `2.6`. */
export const newestVersion = versionText(newestOf(placementService));

/** An answer of a service in this process. */
export type Answer = {
  /** The method and the path, for messages of tests. */
  readonly request: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body if its type is JSON, else undefined. */
  readonly json: unknown;
};

/**
 * Sends a request.
 *
 * @param body is sent as JSON
 * @param version the value of OpenStack-API-Version, if it is not the usual one
 * @param more further headers
 */
export type Send = (
  method: string,
  path: string,
  body?: unknown,
  version?: string,
  more?: Readonly<Record<string, string>>,
) => Promise<Answer>;

/**
 * Requests to a service in this process, without a socket, by a user who may do everything.
 *
 * @param usualVersion the value of OpenStack-API-Version
 */
export const requestsTo =
  ({ app }: Pick<PlacementService, 'app'>, usualVersion = 'placement 1.39'): Send =>
  async (method, path, body, version = usualVersion, more = {}) => {
    const headers = { 'x-auth-token': 'admin', 'x-roles': 'admin,service', 'openstack-api-version': version, ...more };
    const init =
      body === undefined
        ? { method, headers }
        : { method, headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) };
    // As from a socket, it comes in an iteration of the event loop of its own: requests one after the other would keep all else waiting.
    await setImmediate();
    const response = await app.request(path, init);
    const text = await response.text();
    const isJson = text !== '' && response.headers.get('content-type') === 'application/json';
    return {
      request: `${method} ${path}`,
      status: response.status,
      headers: response.headers,
      text,
      json: isJson ? JSON.parse(text) : undefined,
    };
  };

/** The value at a path in an answer. Undefined if there is none. */
export function at(json: unknown, ...path: readonly (string | number)[]): unknown {
  let found = json;
  for (const key of path) {
    if (typeof found !== 'object' || found === null) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[key]; // an object or an array, whose keys these are
  }
  return found;
}

/** The list that an object of an answer has under a name; empty if it has none. */
export function listAt(json: unknown, name: string): readonly unknown[] {
  const list = at(json, name);
  return Array.isArray(list) ? list : [];
}

/** Checks that an answer is a success. @returns it */
export function accepted(answer: Answer): Answer {
  const { request, status, text } = answer;
  assert.ok(status >= 200 && status < 300, `${request}: ${status} ${text}`);
  return answer;
}

/** Makes a resource provider with inventories by resource class, such as `{ VCPU: { total: 8 } }`. */
export async function makeProvider(
  send: Send,
  uuid: string,
  inventories: Readonly<Record<string, object>>,
  more: { readonly name?: string; readonly parent_provider_uuid?: string | undefined } = {},
): Promise<void> {
  accepted(await send('POST', '/resource_providers', { uuid, name: uuid, ...more }));
  const stocked = { resource_provider_generation: 0, inventories };
  accepted(await send('PUT', `/resource_providers/${uuid}/inventories`, stocked));
}

/** The body of a claim of a new consumer from 1.38 on: its allocations by resource provider and class. */
export const newClaim = (wanted: Readonly<Record<string, Readonly<Record<string, number>>>>) => ({
  allocations: Object.fromEntries(Object.entries(wanted).map(([provider, resources]) => [provider, { resources }])),
  project_id: 'p',
  user_id: 'u',
  consumer_generation: null,
  consumer_type: 'INSTANCE',
});
