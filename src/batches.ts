import type { Database } from '../db/connect.ts';
import { onBehalfOf, type RequestIds, requestsServed } from './request_ids.ts';

/** Tells each of a batch what became of what it asked for: it may throw for one alone, or let it wait longer, but not the next batch. */
export type Told<Item, Result> = (item: Item) => Result | Promise<Result>;

/**
 * Does for many at once what they ask for one by one: those who ask while it is under way go together in the next, which
 * begins when it has ended. An idle process does it at once, for one; and nobody joins what was begun before he asked, so that
 * who reads sees what was committed before.
 *
 * @param limit for how many at once
 * @param perform does it for some, in the order in which they asked. What it throws is told to all of them.
 */
export function inBatches<Item, Result>(
  { turn }: Pick<Database, 'turn'>,
  limit: number,
  perform: (items: readonly Item[]) => Promise<Told<Item, Result>>,
): (item: Item) => Promise<Result> {
  type Waiting = PromiseWithResolvers<Result> & { readonly item: Item; readonly askedBy: readonly RequestIds[] };
  let queue: Waiting[] = [];
  let running = false;

  const performBatch = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const told = await perform(batch.map(({ item }) => item));
      for (const { item, resolve, reject } of batch) {
        try {
          resolve(told(item));
        } catch (error) {
          reject(error);
        }
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };

  const run = async (): Promise<void> => {
    running = true;
    while (queue.length > 0) {
      await turn();
      const batch = queue.slice(0, limit);
      queue = queue.slice(limit);
      const askedBy = batch.flatMap((waiting) => waiting.askedBy);
      await onBehalfOf(askedBy, () => performBatch(batch));
    }
    running = false;
  };

  return (item) => {
    const waiting = { ...Promise.withResolvers<Result>(), item, askedBy: requestsServed() };
    queue.push(waiting);
    if (!running) void run();
    return waiting.promise;
  };
}
