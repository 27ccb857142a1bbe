import type { LockWait } from '../../db/engine/slow_lane.ts';
import type { Entry } from './queued.ts';

export type { Entry } from './queued.ts';

/** Which items of a queue may share a batch, and what they lock in the database. */
export type BatchOptions<Item, Result = never> = {
  /** The largest number of items in a batch. */
  readonly limit: number;
  /** Keys of an item. Of two items with a common key, the later one goes in a later batch. */
  readonly orderOf?: (item: Item) => readonly string[];
  /**
   * Keys of what else an item locks in the database. Items with a common key may share a batch, but none of them starts
   * beside a long batch that locks the same.
   */
  readonly locksOf?: (item: Item) => readonly string[];
  /** A key of the lock of a table that every item takes, and that items can hold at the same time. */
  readonly sharedLock?: string;
  /** As how many items one counts for the limit, where that is not 1. */
  readonly weightOf?: (item: Item) => number;
  /** Whether an item must be alone in its batch. */
  readonly isAlone?: (item: Item) => boolean;
  /**
   * Whether one item may have caused the error of the whole batch. Then nothing was done for any item, and the batch is
   * repeated in parts.
   */
  readonly isOfOne?: (error: unknown) => boolean;
  /** Asks the database which keys of these items other transactions hold at the moment. */
  readonly findLocked?: (items: readonly Item[]) => Promise<readonly string[]>;
  /**
   * Waits until a key is free, without holding another lock.
   *
   * @throws `lockNotAvailable` when the wait is over
   */
  readonly awaitLock?: (key: string, wait: LockWait) => Promise<unknown>;
  /** The shortest time between the starts of two batches, in milliseconds. */
  readonly everyMs?: number;
  /** How the next batch is prepared while one is performed; without it, it is not. */
  readonly ahead?: {
    /** Whether to prepare an item takes so long that it should be done before the turn of its batch. */
    readonly isWorthIt: (item: Item) => boolean;
    /**
     * Prepares a batch, and settles none of its entries. `perform` gets the same batch next, unless items of the batch before are put
     * back or that batch takes long: then the items of this one are put back as well.
     *
     * @returns false if it cannot be prepared; then its items stay in the queue
     */
    readonly prepare: (batch: readonly Entry<Item, Result>[]) => boolean;
  };
};
