import type { Database } from '../../db/connect.ts';
import { isTimedOut } from '../../db/sqlstate.ts';
import { onBehalfOf, type RequestIds, requestsServed } from '../request_ids.ts';
import { heldUpLimit, inTurn } from './in_turn.ts';
import { type Partable, parted, refuseParted, takingTurns } from './parting.ts';

/** Gives each of a batch its result. It may throw for one of them, or take longer: neither the others nor the next batch wait. */
export type Told<Item, Result> = (item: Item) => Result | Promise<Result>;

/** What goes together, and what must not. */
export type BatchOptions<Item> = {
  /** How many go together at most. */
  readonly limit: number;
  /**
   * What an item locks in the database; undefined where it locks nothing. An item waits while another that locks the same is
   * held up; and where both were parted from one batch and that one waited in vain, it is refused with it.
   */
  readonly concerns?: (item: Item) => unknown;
  /** Whether an error is the fault of one of them, and nothing was done for any: then each goes by itself, a few at once. */
  readonly isOfOne?: (error: unknown) => boolean;
};

/**
 * Does for many at once what they ask for one by one: those who ask while a batch is under way go together in the next, which
 * begins when that one has ended, or is held up. An idle process serves the first who asks at once. Nobody joins a batch that
 * began before he asked, so that a reader sees what was committed before.
 *
 * @param perform serves a batch, in the order in which they asked. What it throws is told to all of them, unless `isOfOne`.
 */
export function inBatches<Item, Result>(
  database: Pick<Database, 'turn'>,
  { limit, concerns = () => undefined, isOfOne = () => false }: BatchOptions<Item>,
  perform: (items: readonly Item[]) => Promise<Told<Item, Result>>,
): (item: Item) => Promise<Result> {
  type Waiting = Partable &
    PromiseWithResolvers<Result> & { readonly item: Item; readonly askedBy: readonly RequestIds[] };
  let queue: Waiting[] = [];

  const concerning = (others: readonly Waiting[]): ((waiting: Waiting) => boolean) => {
    const concerned = new Set(others.map(({ item }) => concerns(item)));
    concerned.delete(undefined);
    return ({ item }) => concerned.has(concerns(item));
  };

  const isAloneNext = takingTurns();
  /** Those who go by themselves end one by one, while the others of their turn may be held up. */
  const ended = new WeakSet<Waiting>();

  const takeBatch = (heldUp: readonly (readonly Waiting[])[]): readonly Waiting[] | undefined => {
    const underWay = heldUp.map((batch) => batch.filter((waiting) => !ended.has(waiting)));
    const concernsHeldUp = concerning(underWay.flat());
    const alone = queue.filter((waiting) => waiting.alone);
    const concernsAlone = concerning(alone);
    const free = firstOfEachConcern(alone.filter((waiting) => !concernsHeldUp(waiting)));
    const others = queue
      .filter((waiting) => !waiting.alone && !concernsHeldUp(waiting) && !concernsAlone(waiting))
      .slice(0, limit);
    const connections = underWay.reduce((sum, batch) => sum + (batch[0]?.alone === true ? batch.length : 1), 0);
    const waits = { heldUp: connections, alone: free.length > 0, others: others.length > 0 };
    // Several go by themselves at once, as many as may be held up.
    const batch = new Set(isAloneNext(waits) ? free.slice(0, heldUpLimit - connections) : others);
    queue = queue.filter((waiting) => !batch.has(waiting));
    return batch.size > 0 ? [...batch] : undefined;
  };

  /** All who concern nothing, and of those who concern the same the first. */
  const firstOfEachConcern = (some: readonly Waiting[]): readonly Waiting[] => {
    const concerned = new Set<unknown>();
    return some.filter(({ item }) => {
      const concern = concerns(item);
      const isFirst = concern === undefined || !concerned.has(concern);
      concerned.add(concern);
      return isFirst;
    });
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
      if (batch.length > 1 && isOfOne(error)) queue.unshift(...parted(batch));
      else {
        for (const { reject } of batch) reject(error);
        if (isTimedOut(error)) queue = refuseParted(queue, concerning(batch), error);
      }
    }
    for (const waiting of batch) ended.add(waiting);
  };

  const wake = inTurn(database, takeBatch, async (batch) => {
    const each = batch[0]?.alone === true ? batch.map((waiting) => [waiting]) : [batch];
    await Promise.all(each.map(performBatch));
  });

  return (item) => {
    const waiting = { ...Promise.withResolvers<Result>(), item, askedBy: requestsServed(), alone: false };
    queue.push(waiting);
    wake();
    return waiting.promise;
  };
}
