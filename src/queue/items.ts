import type { LockWait } from '../../db/engine/slow_lane.ts';
import type { RequestIds } from '../log/log.ts';

/** An item of a batch, as `perform` gets it. It is settled or put back once; later calls do nothing. */
export type Entry<Item, Result> = {
  readonly item: Item;
  resolve(result: Result | Promise<Result>): void;
  reject(error: unknown): void;
  /**
   * Puts the item back to the head of the queue.
   *
   * @param item the item that replaces it
   * @param after a promise that the item waits for first; if it fails, the item is rejected with the same error
   * @param letsPass whether, until then, later items with a common key may go before it
   */
  again(item?: Item, after?: Promise<unknown>, letsPass?: boolean): void;
};

/** An item from its request until it is settled. */
export type Queued<Item, Result> = Entry<Item, Result> &
  Batchable & {
    item: Item;
    share: number;
    /** Whether the item is retried alone, because its batch was refused a lock that no locked key explains. */
    isAlone: boolean;
    /** How often a locked key explained that the item was refused a lock, in batches with others or alone. */
    explained: number;
    isReady: boolean;
    letsPass: boolean;
    state: 'queued' | 'under way' | 'again' | 'settled';
    readonly requestedBy: readonly RequestIds[];
    /** How much of the time limit is left. */
    remainingMs(): number;
    /** Rejects the item at its time limit, if it is in the queue then. An item under way may still succeed. */
    expireInTime(): void;
    /** Rejects the item in any state. */
    readonly refuse: (error: unknown) => void;
  };

/** What the work reports to the queue about an item. */
type Listeners<Item, Result> = {
  resolve(result: Result | Promise<Result>): void;
  reject(error: unknown): void;
  /** The item was settled for the first time. */
  onSettled(queued: Queued<Item, Result>): void;
  /** The promise that the item waited for has resolved. */
  onReady(): void;
  /** The promise that the item waited for has failed. */
  giveUp(queued: Queued<Item, Result>, error: unknown): void;
  /** The time limit of the item is over. */
  onExpired(queued: Queued<Item, Result>): void;
};

/** Whether an item is in a batch that is being performed. */
export const isUnderWay = ({ state }: { readonly state: string }): boolean => state === 'under way';

/**
 * Makes an item of a queue. Only while it is under way can it be resolved, rejected or put back.
 *
 * @param timeLimitMs the time that the item has from now on; 0 if it has no limit
 */
export function openQueued<Item, Result>(
  options: Pick<Queued<Item, Result>, 'item' | 'conflictKeys' | 'share' | 'weight' | 'requestedBy'>,
  timeLimitMs: number,
  { resolve, reject, onSettled, onReady, giveUp, onExpired }: Listeners<Item, Result>,
): Queued<Item, Result> {
  const cameAtMs = performance.now();
  let expiry: NodeJS.Timeout | undefined;
  const settle = (): void => {
    if (queued.state !== 'settled') onSettled(queued);
    queued.state = 'settled';
    clearTimeout(expiry);
  };
  const waitFor = async (after: Promise<unknown>): Promise<void> => {
    queued.isReady = false;
    try {
      await after;
    } catch (error) {
      giveUp(queued, error);
      return;
    }
    queued.isReady = true;
    onReady();
  };
  const queued: Queued<Item, Result> = {
    ...options,
    isAlone: false,
    explained: 0,
    isReady: true,
    letsPass: false,
    state: 'queued',
    remainingMs: () => (timeLimitMs === 0 ? Number.POSITIVE_INFINITY : cameAtMs + timeLimitMs - performance.now()),
    expireInTime: () => {
      if (timeLimitMs === 0 || expiry !== undefined) return;
      const expire = (): void => {
        expiry = undefined;
        if (queued.state === 'queued') onExpired(queued);
      };
      expiry = setTimeout(expire, Math.max(0, queued.remainingMs()));
    },
    resolve: (result) => {
      if (!isUnderWay(queued)) return;
      settle();
      resolve(result);
    },
    reject: (error) => {
      if (isUnderWay(queued)) queued.refuse(error);
    },
    refuse: (error) => {
      settle();
      reject(error);
    },
    again: (next = queued.item, after = undefined, letsPass = false) => {
      if (!isUnderWay(queued)) return;
      queued.state = 'again';
      queued.item = next;
      queued.letsPass = letsPass;
      if (after !== undefined) void waitFor(after);
    },
  };
  return queued;
}

/** What the choice of a batch depends on. */
type Batchable = {
  /** Two items with a common conflict key never go together: the later one waits for the earlier one. */
  readonly conflictKeys: readonly string[];
  /** The largest batch that the item may be part of; 1 if it must be alone. */
  readonly share: number;
  /** As how many items it counts for the size of a batch. */
  readonly weight: number;
  /** Whether the promise that the item waits for, if any, has resolved. */
  readonly isReady: boolean;
  /** Whether, until that promise has resolved, later items with a common key do not wait for this item. */
  readonly letsPass?: boolean;
};

/**
 * Chooses the next batch: all items that can go now, in the order of the queue. The batch ends before the first item that would
 * make it too large.
 *
 * @param limit the largest number of items
 * @param isFree whether what an item needs is neither locked nor in use
 * @param keep is called with each item that must wait, except for items that only find no room in this batch
 */
export function takeBatch<Item extends Batchable>(
  queue: readonly Item[],
  limit: number,
  isFree: (item: Item) => boolean,
  keep: (item: Item) => void,
): Item[] {
  const earlier = new Set<string>();
  const batch: Item[] = [];
  let size = limit;
  let weight = 0;
  for (const item of queue) {
    if (batch.length >= size) break;
    const isNext = item.conflictKeys.every((key) => !earlier.has(key));
    if (item.isReady || item.letsPass !== true) for (const key of item.conflictKeys) earlier.add(key);
    if (!isNext || !item.isReady || !isFree(item)) {
      keep(item);
      continue;
    }
    if (item.share <= batch.length || (batch.length > 0 && weight + item.weight > limit)) break;
    batch.push(item);
    weight += item.weight;
    size = Math.min(size, item.share);
  }
  return batch;
}

/** Which items of a queue may share a batch, and what they lock in the database. */
export type BatchOptions<Item, Result = never> = {
  /** The largest number of items in a batch. */
  readonly limit: number;
  /** The conflict keys of an item. Of two items with a common one, the later item goes in a later batch. */
  readonly conflictKeysOf?: (item: Item) => readonly string[];
  /**
   * Keys of further locks that an item takes in the database. Items with a common lock may share a batch, but no item starts
   * beside a long batch that has the same lock.
   */
  readonly locksOf?: (item: Item) => readonly string[];
  /** A key of the lock of a table that every item takes, and that items can hold at the same time. */
  readonly sharedLock?: string;
  /** As how many items one counts for the limit, where that is not 1. */
  readonly weightOf?: (item: Item) => number;
  /** Whether an item must be alone in its batch. */
  readonly isAlone?: (item: Item) => boolean;
  /**
   * Whether one item may have caused the error of the whole batch. Then nothing was done for any item, and each item is retried
   * alone.
   */
  readonly isOfOne?: (error: unknown) => boolean;
  /** Reads from the database which keys of these items other transactions hold at the moment. */
  readonly findLocked?: (items: readonly Item[]) => Promise<readonly string[]>;
  /**
   * Waits until a key is free, without holding another lock.
   *
   * @throws `lockNotAvailable` when the wait is over
   */
  readonly awaitLock?: (key: string, wait: LockWait) => Promise<unknown>;
  /** The shortest time between the starts of two batches, in milliseconds. */
  readonly everyMs?: number;
  /** How the next batch is prepared while a batch is performed; if absent, no batch is prepared. */
  readonly ahead?: {
    /** Whether preparing an item takes so long that it should be done before its batch can begin. */
    readonly isWorthIt: (item: Item) => boolean;
    /**
     * Prepares a batch, and settles none of its entries. `perform` gets the same batch next, unless items of the batch before are put
     * back or the batch before takes long: then the items of the prepared batch are put back as well.
     *
     * @returns false if it cannot be prepared; then its items stay in the queue
     */
    readonly prepare: (batch: readonly Entry<Item, Result>[]) => boolean;
  };
};
