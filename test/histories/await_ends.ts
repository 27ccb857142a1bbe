import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../races/random.ts';
import type { Action } from './action.ts';
import { newest } from './chooser.ts';
import { setTerm } from './consumer_actions.ts';
import type { Reply } from './history.ts';
import { readAllocations } from './read_actions.ts';

/** A term that ends later than this is not waited for. */
const nearMs = 5000;
/** Two reads of a consumer are a quarter to five quarters of this time apart. */
const everyMs = 200;

/**
 * Reads a consumer again and again until its term has expired and it is removed. Most terms are renewed once, shortly before
 * their end. A consumer that lasts for long is not waited for.
 *
 * @param send sends a request and notes it in the history
 * @param patienceMs the time for the removal after the end
 * @returns how long after its end the consumer was seen to be removed
 */
export async function awaitEnd(
  uuid: string,
  random: Random,
  send: (action: Action) => Promise<Reply | undefined>,
  patienceMs: number,
): Promise<number | undefined> {
  let endMs: number | undefined;
  let renewsAtMs = random.percent(70) ? random.below(500) : undefined;
  for (const giveUpMs = Date.now() + nearMs + patienceMs; Date.now() < giveUpMs; ) {
    const reply = await send(readAllocations(newest, uuid));
    if (reply !== undefined) {
      const { expires_at, consumer_generation } = reply.body as Shown;
      const now = Date.now();
      if (expires_at === undefined) return endMs === undefined ? undefined : now - endMs;
      if (expires_at === null || Date.parse(expires_at) - now > nearMs) return undefined;
      endMs = Date.parse(expires_at);
      if (renewsAtMs !== undefined && endMs - now <= renewsAtMs + everyMs) {
        await sleep(Math.max(0, endMs - renewsAtMs - now));
        await send(setTerm(newest, uuid, consumer_generation ?? null, 1 + random.below(2)));
        renewsAtMs = undefined;
      }
    }
    await sleep(everyMs / 4 + random.below(everyMs));
  }
  return undefined;
}

/** What GET /allocations/{consumer} shows. Without a consumer it has neither. */
type Shown = { readonly expires_at?: string | null; readonly consumer_generation?: number };
