/** What endpoints use of their requests, noted while they answer. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Endpoint } from '../../src/rest/endpoint.ts';

/** The schema of the body, and the names of headers and of query parameters, that an endpoint used of one request. */
export type Use = { schema: unknown; readonly headers: Set<string>; readonly parameters: Set<string> };

/** Sends a request. @returns what its endpoint used; undefined if no endpoint got the request */
export type UsedBy = (request: () => Promise<unknown>) => Promise<Use | undefined>;

/**
 * Notes what endpoints use of requests; the endpoints stay as they are. A query whose parameters are read all at once
 * (`entries`) shows no names.
 */
export function noteUse<Parts>(endpoints: readonly Endpoint<Parts>[]): UsedBy {
  const uses = new AsyncLocalStorage<{ of?: Use }>();
  for (const endpoint of endpoints) {
    const { handle } = endpoint;
    Object.assign(endpoint, {
      handle: (request: Parameters<typeof handle>[0], parts: Parts) => {
        const use: Use = { schema: undefined, headers: new Set(), parameters: new Set() };
        const noted = uses.getStore();
        if (noted !== undefined) noted.of = use;
        const watched: typeof request = {
          ...request,
          param: (name) => request.param(name),
          query: () => {
            const query = request.query();
            const noting = <Value>(read: (name: string) => Value) => {
              return (name: string): Value => {
                use.parameters.add(name);
                return read(name);
              };
            };
            return { entries: query.entries, last: noting(query.last), all: noting(query.all) };
          },
          json: (schema) => {
            use.schema = schema;
            return request.json(schema);
          },
          header: (name) => {
            use.headers.add(name);
            return request.header(name);
          },
        };
        return handle(watched, parts);
      },
    });
  }
  return async (request) => {
    const noted: { of?: Use } = {};
    await uses.run(noted, request);
    return noted.of;
  };
}
