import { AsyncLocalStorage } from 'node:async_hooks';

/** The ids of a request: its own id, and the global id of the operation that it belongs to. */
export type RequestIds = { readonly requestId: string; readonly globalRequestId: string | undefined };

const storage = new AsyncLocalStorage<readonly RequestIds[]>();

/** The requests that the current code runs for; an empty list outside of requests. */
export const requestsServed = (): readonly RequestIds[] => storage.getStore() ?? [];

/** Runs a function for these requests. A batch, for instance, runs for all requests that wait for it. */
export const onBehalfOf = <T>(requests: readonly RequestIds[], run: () => T): T => storage.run(requests, run);
