import type { Database } from '../db/connect.ts';
import { hasSqlstate, sqlstate } from '../db/sqlstate.ts';
import { inTurn } from './in_turn.ts';
import { onBehalfOf, type RequestIds, requestsServed } from './request_ids.ts';

/** Tells each of a batch what became of what it asked for: it may throw for one alone, or let it wait longer, but not the next batch. */
export type Told<Item, Result> = (item: Item) => Result | Promise<Result>;

/**
 * Does for many at once what they ask for one by one: those who ask while it is under way go together in the next, which
 * begins when it has ended, or is held up. An idle process does it at once, for one; and nobody joins what was begun before he
 * asked, so that who reads sees what was committed before.
 *
 * @param options.limit for how many at once
 * @param options.concerns what it takes a lock of: who asks for the same as somebody who is held up waits until that has ended
 * @param perform does it for some, in the order in which they asked. What it throws is told to all of them; but where somebody
 *   holds what one of them needs (`lockNotAvailable`), it is asked to do each by itself.
 */
export function inBatches<Item, Result>(
  database: Pick<Database, 'turn'>,
  { limit, concerns = () => undefined }: { readonly limit: number; readonly concerns?: (item: Item) => unknown },
  perform: (items: readonly Item[]) => Promise<Told<Item, Result>>,
): (item: Item) => Promise<Result> {
  type Waiting = PromiseWithResolvers<Result> & {
    readonly item: Item;
    readonly askedBy: readonly RequestIds[];
    /** Whether it was in a batch that waited for somebody else in vain: it goes by itself then. */
    readonly alone: boolean;
  };
  let queue: Waiting[] = [];

  const takeBatch = (heldUp: readonly (readonly Waiting[])[]): readonly Waiting[] | undefined => {
    const held = new Set(heldUp.flat().map(({ item }) => concerns(item)));
    held.delete(undefined);
    const batch: Waiting[] = [];
    const later: Waiting[] = [];
    for (const waiting of queue) {
      const isFull = batch.length >= (waiting.alone ? 1 : limit) || batch[0]?.alone === true;
      (isFull || held.has(concerns(waiting.item)) ? later : batch).push(waiting);
    }
    queue = later;
    return batch.length > 0 ? batch : undefined;
  };

  const performBatch = async (batch: readonly Waiting[]): Promise<void> => {
    const askedBy = batch.flatMap((waiting) => waiting.askedBy);
    try {
      const told = await onBehalfOf(askedBy, () => perform(batch.map(({ item }) => item)));
      for (const waiting of batch) {
        try {
          waiting.resolve(onBehalfOf(waiting.askedBy, () => told(waiting.item)));
        } catch (error) {
          waiting.reject(error);
        }
      }
    } catch (error) {
      if (batch.length > 1 && hasSqlstate(error, sqlstate.lockNotAvailable)) {
        queue.unshift(...batch.map((waiting) => ({ ...waiting, alone: true })));
      } else for (const { reject } of batch) reject(error);
    }
  };

  const wake = inTurn(database, takeBatch, performBatch);

  return (item) => {
    const waiting = { ...Promise.withResolvers<Result>(), item, askedBy: requestsServed(), alone: false };
    queue.push(waiting);
    wake();
    return waiting.promise;
  };
}
