import type { Database } from '../../db/engine/connect.ts';
import { onBehalfOf, type RequestIds, requestsServed } from '../log/log.ts';

/** Runs one refresh at a time. All calls before the start of a refresh share it. */
export type SharedRefreshes<Result> = {
  /** The result of a refresh that begins after this call. */
  next(): Promise<Result>;
  /** Whether a refresh is under way, or about to begin. */
  isRunning(): boolean;
};

/** @param refresh runs on behalf of the requests that share it */
export function shareRefreshes<Result>(
  { turn }: Pick<Database, 'turn'>,
  refresh: () => Promise<Result>,
): SharedRefreshes<Result> {
  let running = false;
  /** The refresh that is about to begin; calls before its start share it. */
  let gathering: Promise<Result> | undefined;
  /** The refresh after the one that is under way. */
  let following: PromiseWithResolvers<Result> | undefined;
  let askedFor: RequestIds[] = [];

  const start = (): Promise<Result> => {
    running = true;
    const refreshed = gather();
    // The next refresh begins before the calls get the result of this one. Otherwise a call that asks again at once
    // could start a second one in parallel, and both would apply the same changes.
    const end = (): void => {
      running = false;
      const waited = following;
      following = undefined;
      waited?.resolve(start());
    };
    refreshed.then(end, end);
    gathering = refreshed;
    return refreshed;
  };
  const gather = async (): Promise<Result> => {
    await turn();
    const requests = askedFor;
    askedFor = [];
    gathering = undefined;
    return onBehalfOf(requests, refresh);
  };

  return {
    next: () => {
      askedFor.push(...requestsServed());
      if (gathering !== undefined) return gathering;
      // The refresh under way may have begun before this call, so the call shares the next one.
      if (!running) return start();
      following ??= Promise.withResolvers();
      return following.promise;
    },
    isRunning: () => running,
  };
}
