import type { FollowedChange } from '../src/client/changes.ts';
import { VersionError } from '../src/client/errors.ts';
import { placement } from './session.ts';
import { createStore } from './store.ts';

/** Whether changes are told at once; where they are not, why. */
export type Following = { readonly state: 'starting' | 'live' } | { readonly state: 'off'; readonly error: unknown };

/** How this page learns of changes. */
export const following = createStore<Following>({ state: 'starting' });

const listeners = new Set<(change: FollowedChange) => void>();
let isStarted = false;

/** Calls back for each change of the service, from now on. All views share one request. @returns a function that ends it */
export function follow(listener: (change: FollowedChange) => void): () => void {
  listeners.add(listener);
  if (!isStarted) {
    isStarted = true;
    run();
  }
  return () => listeners.delete(listener);
}

/** How long to wait after an error that is not of the connection, in milliseconds. */
const pauseMs = 10_000;

async function run(): Promise<void> {
  let since: string | undefined;
  for (;;) {
    try {
      for await (const change of placement.changes({ since })) {
        following.set({ state: 'live' });
        since = change.token;
        for (const listener of [...listeners]) listener(change);
      }
    } catch (error) {
      following.set({ state: 'off', error });
      if (error instanceof VersionError) return; // it is the same until the page is loaded again
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}
