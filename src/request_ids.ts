import { AsyncLocalStorage } from 'node:async_hooks';

/** The ids of a request: its own, and that of the operation that it is part of. */
export type RequestIds = { readonly requestId: string; readonly globalRequestId: string | undefined };

const storage = new AsyncLocalStorage<readonly RequestIds[]>();

/** The requests on whose behalf the present code runs; none outside of requests. */
export const requestsServed = (): readonly RequestIds[] => storage.getStore() ?? [];

/** Runs something on behalf of these requests: what many wait for, such as the write of a batch, is of all of them. */
export const onBehalfOf = <T>(requests: readonly RequestIds[], run: () => T): T => storage.run(requests, run);
