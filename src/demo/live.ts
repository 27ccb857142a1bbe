import { ConnectionError, isNotFound, type Placement } from '../client/index.ts';
import { pause } from '../client/send.ts';
import { newInstance, placeAll } from './instances.ts';
import { submitJobs } from './jobs.ts';

/** The pause between two rounds, in milliseconds. */
const roundMs = 250;
/** The largest number of consumers that are created or deleted in a round. */
const mostInRound = 6;

/** Creates and deletes consumers, and submits jobs, without end. @throws the reason of the signal */
export async function liveDemo(placement: Placement, present: readonly string[], signal?: AbortSignal): Promise<void> {
  await Promise.all([exchange(placement, present, signal), submitJobs(placement, signal)]);
}

/** Creates and deletes consumers so that their number stays about the same. */
async function exchange(placement: Placement, present: readonly string[], signal?: AbortSignal): Promise<never> {
  const consumers = [...present];
  const wanted = Math.max(present.length, mostInRound);
  for (;;) {
    try {
      const lack = wanted - consumers.length;
      const coming = Math.max(0, Math.round(Math.random() * mostInRound + lack / 20));
      const instances = Array.from({ length: Math.min(coming, 2 * mostInRound) }, () => newInstance(Math.random));
      consumers.push(...(await placeAll(placement, instances)));
      for (let going = Math.floor(Math.random() * (mostInRound + 1)); going > 0; going--) {
        const [deleted] = consumers.splice(Math.floor(Math.random() * consumers.length), 1);
        if (deleted !== undefined) await placement.allocations.delete(deleted).catch(ignoreMissing);
      }
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error; // a service that is unavailable is waited for
    }
    await pause(roundMs, signal);
  }
}

/** Another program may have deleted the consumer. */
function ignoreMissing(error: unknown): void {
  if (!isNotFound(error)) throw error;
}
