import { type ApiError, concurrentlyUpdated, conflict, errorCodes } from '../rest/errors.ts';

/**
 * How often a request is judged and written whose client names no generation. Each time another request has changed
 * what it was judged by, so that many in a row mean that others always come first.
 */
const mostAttempts = 32;

const lostEachTime = (): ApiError => conflict(concurrentlyUpdated, errorCodes.concurrentUpdate);

/**
 * Judges and writes a request, again and again until it is written or refused.
 *
 * @param attempt resolves with undefined if another request has changed meanwhile what it was judged by
 * @param lostRace the error after the last attempt
 * @throws ApiError what `attempt` throws, or `lostRace`
 */
export async function untilWritten<Written>(
  attempt: () => Promise<Written | undefined>,
  lostRace = lostEachTime,
): Promise<Written> {
  for (let made = 0; made < mostAttempts; made += 1) {
    const written = await attempt();
    if (written !== undefined) return written;
  }
  throw lostRace();
}
