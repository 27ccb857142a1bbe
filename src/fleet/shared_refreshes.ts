import type { Database } from '../../db/connect.ts';
import { onBehalfOf, type RequestIds, requestsServed } from '../request_ids.ts';

/** One refresh at a time, each shared by all who asked before it began. */
export type SharedRefreshes<Result> = {
  /** What a refresh brings that begins after this call. */
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
  /** The refresh that is about to begin, for all who ask until it does; and the one after that which is under way. */
  let gathering: Promise<Result> | undefined;
  let following: PromiseWithResolvers<Result> | undefined;
  let askedFor: RequestIds[] = [];

  const start = (): Promise<Result> => {
    running = true;
    const refreshed = gather();
    // The next begins before anybody hears of this one: whoever asks again at once must not begin a second beside it, since
    // both would take over the same changes.
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
      // A refresh under way may have begun before this call, so it is the one after it that is shared.
      if (!running) return start();
      following ??= Promise.withResolvers();
      return following.promise;
    },
    isRunning: () => running,
  };
}
