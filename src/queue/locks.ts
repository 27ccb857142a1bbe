import type { Database } from '../../db/engine/connect.ts';
import { isLockRefused } from '../../db/engine/failures.ts';
import type { LockWait } from '../../db/engine/slow_lane.ts';
import type { BatchOptions, Queued } from './items.ts';

/** An item, and its conflict keys. */
type Needing<Item> = Pick<Queued<Item, unknown>, 'item' | 'conflictKeys'>;

/** The keys that other programs hold in the database and that have refused a lock to this queue. */
export type LockedKeys<Item> = {
  has(key: string): boolean;
  areAny(): boolean;
  /** Reads from the database which of the keys that these items need are locked. After an error no key counts as locked. */
  find(items: readonly Needing<Item>[]): Promise<readonly string[]>;
  /**
   * Treats a key as locked until the slow lane has got its lock: items that need the key stay in the queue.
   *
   * @param refusal the error by which the lock was refused
   */
  waitFor(key: string, refusal: unknown): void;
  /** As `waitFor`, but only if the key, which these items need, is locked in the database. */
  waitIfLocked(key: string, items: readonly Needing<Item>[], refusal: () => unknown): Promise<void>;
};

/**
 * Starts without a locked key.
 *
 * @param queue.isWanted whether an item still needs a key; otherwise the slow lane need not wait for it
 * @param queue.onFree called when the wait for a key is over, also after an error: then the items are retried, and each item
 *   fails or succeeds by itself
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
 * After this many refusals that a locked key explains, an item is retried alone nevertheless. Otherwise a row that is often
 * locked for a short time would hide another lock for ever.
 */
const explainedRefusals = 3;

/** Handles the items of a failed batch for which nothing was done. */
type FailedItems<Item, Result> = {
  /** Rejects the items, retries them together or alone, or hands an item to the slow lane. Never rejects. */
  goOn(failed: readonly Queued<Item, Result>[], error: unknown): Promise<void>;
  /** Items that are being repeated in the slow lane. */
  readonly slow: ReadonlySet<Queued<Item, Result>>;
  /** Whether an item that is not settled must be retried alone. */
  areAnyAlone(): boolean;
  /** An item was settled. */
  forget(item: Pick<Queued<Item, Result>, 'isAlone'>): void;
  /** The error of the last refused lock. */
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
  /** How many items must be retried alone. */
  let aloneCount = 0;
  let lastRefusal: unknown;

  const goOn = async (failed: readonly Waiting[], error: unknown): Promise<void> => {
    if (!isLockRefused(error)) {
      if (failed.length > 1 && isOfOne?.(error)) for (const waiting of failed) tryAlone(waiting);
      else for (const { reject } of failed) reject(error);
      return;
    }
    lastRefusal = error;
    // An item may wait behind many others before it is retried alone, so its time limit must be enforced in the queue, too.
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
