import type { Database } from '../../db/engine/connect.ts';
import { isLockRefused } from '../../db/engine/failures.ts';
import type { LockWait } from '../../db/engine/slow_lane.ts';
import type { BatchOptions, Queued } from './items.ts';

/** An item, and its conflict keys. */
type Needing<Item> = Pick<Queued<Item, unknown>, 'item' | 'conflictKeys'>;

/** The keys that other programs hold in the database, as far as this queue has met them. */
export type LockedKeys<Item> = {
  has(key: string): boolean;
  areAny(): boolean;
  /** Asks the database which keys that these items need are locked. An error means that none was found. */
  find(items: readonly Needing<Item>[]): Promise<readonly string[]>;
  /**
   * Takes a key as locked until the slow lane got its lock, so that the items that need it stay in the queue.
   *
   * @param refusal the error by which the lock was refused
   */
  waitFor(key: string, refusal: unknown): void;
  /** As `waitFor`, but only if the database says that the key, which these items need, is locked. */
  waitIfLocked(key: string, items: readonly Needing<Item>[], refusal: () => unknown): Promise<void>;
};

/**
 * Starts without a locked key.
 *
 * @param queue.isWanted whether an item still needs a key; otherwise the slow lane need not wait for it
 * @param queue.onFree called when the wait for a key is over, also after an error: then the items are tried again, and
 *   each fails or succeeds by itself
 */
export function openLockedKeys<Item>(
  slowLane: Database['slowLane'],
  { findLocked, awaitLock }: Pick<BatchOptions<Item>, 'findLocked' | 'awaitLock'>,
  queue: {
    needsOf(needing: Needing<Item>): readonly string[];
    isWanted(key: string): boolean;
    onFree(): void;
  },
): LockedKeys<Item> {
  const locked = new Set<string>();
  const find: LockedKeys<Item>['find'] = async (items) => {
    if (findLocked === undefined) return [];
    const needed = new Set(items.flatMap((needing) => queue.needsOf(needing)));
    const found = await findLocked(items.map(({ item }) => item)).catch(() => []);
    return found.filter((key) => needed.has(key));
  };
  const waitFor: LockedKeys<Item>['waitFor'] = (key, refusal) => {
    if (locked.has(key) || awaitLock === undefined) return;
    locked.add(key);
    const end = (): void => {
      locked.delete(key);
      queue.onFree();
    };
    const isWanted = (): boolean => queue.isWanted(key);
    slowLane.attempt((wait) => awaitLock(key, wait), { holdsOthers: false, isWanted, refusal }).then(end, end);
  };
  return {
    has: (key) => locked.has(key),
    areAny: () => locked.size > 0,
    find,
    waitFor,
    waitIfLocked: async (key, items, refusal) => {
      if ((await find(items)).includes(key)) waitFor(key, refusal());
    },
  };
}

/**
 * After this many refusals that a locked key explains, an item is tried alone all the same. Otherwise a row that is often
 * locked for a short time would hide another lock for ever.
 */
const explainedRefusals = 3;

/** How items go on whose batch failed, and for which nothing was done. */
type FailedItems<Item, Result> = {
  /** Rejects the items, puts them back to be tried again or to be tried alone, or hands one to the slow lane. Never rejects. */
  goOn(failed: readonly Queued<Item, Result>[], error: unknown): Promise<void>;
  /** Items that are being repeated in the slow lane. */
  readonly slow: ReadonlySet<Queued<Item, Result>>;
  /** Whether an item that is not settled is to be tried alone. */
  areAnyAlone(): boolean;
  /** An item was settled. */
  forget(item: Pick<Queued<Item, Result>, 'isAlone'>): void;
  /** The error by which a lock was refused last. */
  lastRefusal(): unknown;
};

/**
 * Starts without a failed item.
 *
 * @param queue.locked the keys that other programs hold
 * @param queue.performFor performs a batch. If it rejects, nothing was done for the items that it has not settled
 * @param queue.putBack puts items back into the queue
 * @param queue.onEnd called when an item has left the slow lane
 */
export function openFailedItems<Item, Result>(
  slowLane: Database['slowLane'],
  { isOfOne }: Pick<BatchOptions<Item, Result>, 'isOfOne'>,
  queue: {
    readonly locked: LockedKeys<Item>;
    performFor(batch: readonly Queued<Item, Result>[], wait: LockWait): Promise<void>;
    putBack(items: readonly Queued<Item, Result>[]): void;
    onEnd(): void;
  },
): FailedItems<Item, Result> {
  type Waiting = Queued<Item, Result>;
  const { locked } = queue;
  const slow = new Set<Waiting>();
  /** How many items are to be tried alone. */
  let aloneCount = 0;
  let lastRefusal: unknown;

  const goOn = async (failed: readonly Waiting[], error: unknown): Promise<void> => {
    if (!isLockRefused(error)) {
      if (failed.length > 1 && isOfOne?.(error)) for (const waiting of failed) tryAlone(waiting);
      else for (const { reject } of failed) reject(error);
      return;
    }
    lastRefusal = error;
    // An item may have to wait behind many others before it is tried alone, so its time is measured from now on.
    for (const waiting of failed) waiting.expireInTime();
    const keys = await locked.find(failed);
    for (const key of keys) locked.waitFor(key, error);
    for (const waiting of failed) {
      if (keys.length > 0 && ++waiting.explained <= explainedRefusals) waiting.again();
      else if (failed.length > 1) tryAlone(waiting);
      else repeatSlowly(waiting, error);
    }
  };

  const tryAlone = (waiting: Waiting): void => {
    if (!waiting.isAlone) aloneCount += 1;
    waiting.isAlone = true;
    waiting.explained = 0;
    waiting.share = 1;
    waiting.again();
  };

  const repeatSlowly = (waiting: Waiting, error: unknown): void => {
    slow.add(waiting);
    const repeated = slowLane.attempt((wait) => queue.performFor([waiting], wait), {
      holdsOthers: true,
      endsAtMs: performance.now() + waiting.remainingMs(),
      refusal: error,
    });
    const end = (): void => {
      slow.delete(waiting);
      if (waiting.state === 'again') queue.putBack([waiting]);
      queue.onEnd();
    };
    repeated.then(end, (error: unknown) => {
      waiting.reject(isLockRefused(error) ? slowLane.tooLong(error) : error);
      end();
    });
  };

  return {
    goOn,
    slow,
    areAnyAlone: () => aloneCount > 0,
    forget: ({ isAlone }) => {
      if (isAlone) aloneCount -= 1;
    },
    lastRefusal: () => lastRefusal,
  };
}
