import type { FollowedChange } from '../src/client/changes.ts';
import { VersionError } from '../src/client/errors.ts';
import { placement } from './session.ts';
import { createStore } from './store.ts';
import { untilVisible, visibility } from './visibility.ts';

/** Whether the page follows changes; `off` has the reason. */
export type Following = { readonly state: 'starting' | 'live' } | { readonly state: 'off'; readonly error: unknown };

/** The state of the request that follows changes. */
export const following = createStore<Following>({ state: 'starting' });

const listeners = new Set<(change: FollowedChange) => void>();
let isStarted = false;

/** Calls back for each change of the service, from now on. All views share one request. @returns a function that stops it */
export function follow(listener: (change: FollowedChange) => void): () => void {
  listeners.add(listener);
  if (!isStarted) {
    isStarted = true;
    run();
  }
  return () => listeners.delete(listener);
}

/** The pause after an error that the client does not retry, in milliseconds. */
const pauseMs = 10_000;

/**
 * Follows while the page is visible. A browser has few connections to a service for all its tabs, and a waiting request takes one. So a
 * hidden page ends its request, and catches up when it is visible again.
 */
async function run(): Promise<void> {
  let since: string | undefined;
  for (;;) {
    await untilVisible();
    const hidden = new AbortController();
    const unsubscribe = visibility.subscribe(() => hidden.abort());
    const onCurrent = () => following.set({ state: 'live' });
    try {
      for await (const change of placement.changes({ since, onCurrent, signal: hidden.signal })) {
        since = change.token;
        for (const listener of [...listeners]) listener(change);
      }
    } catch (error) {
      if (hidden.signal.aborted) {
        following.set({ state: 'starting' });
        continue;
      }
      following.set({ state: 'off', error });
      if (error instanceof VersionError) return; // the version of the service stays the same until the page is loaded again
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    } finally {
      unsubscribe();
    }
  }
}
