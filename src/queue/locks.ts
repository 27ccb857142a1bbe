import type { Database } from '../../db/engine/connect.ts';
import { isLockRefused } from '../../db/engine/failures.ts';
import type { LockWait } from '../../db/engine/slow_lane.ts';
import type { BatchOptions, Queued, Suspicion } from './items.ts';

/** An item, and the keys that its order depends on. */
type Needing<Item> = Pick<Queued<Item, unknown>, 'item' | 'order'>;

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
  /** Does so if the database says that the key, which these items need, is locked. */
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

/** A failed batch is repeated in this many parts. */
const partsOfBatch = 16;
/**
 * After this many refusals that a locked key explains, an item is suspected all the same: a row that is often locked for
 * a moment would otherwise hide another lock for ever.
 */
const explainedRefusals = 3;

/** How items go on whose batch failed, and for which nothing was done. */
type FailedItems<Item, Result> = {
  /**
   * Rejects the items, puts them back with a suspicion or without one, or repeats an item alone in the slow lane. Never
   * rejects.
   */
  goOn(failed: readonly Queued<Item, Result>[], error: unknown): Promise<void>;
  /** Items that are being repeated alone in the slow lane. */
  readonly slow: ReadonlySet<Queued<Item, Result>>;
  /** Whether an item that is not settled is suspected. */
  areAnySuspected(): boolean;
  /** An item was settled. */
  forget(item: Pick<Queued<Item, Result>, 'suspicion'>): void;
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
  { isOfOne, awaitLock }: Pick<BatchOptions<Item, Result>, 'isOfOne' | 'awaitLock'>,
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
  /** The number of suspected items. */
  let suspects = 0;
  let lastRefusal: unknown;

  const goOn = async (failed: readonly Waiting[], error: unknown): Promise<void> => {
    if (!isLockRefused(error)) {
      if (failed.length > 1 && isOfOne?.(error)) repeatInParts(failed);
      else for (const { reject } of failed) reject(error);
      return;
    }
    lastRefusal = error;
    // An item may have to wait for its turn among many others, so its time is measured from now on.
    for (const waiting of failed) waiting.expireInTime();
    // For parts the database was asked just before, when the whole batch failed.
    const isAsked = failed.some(({ suspicion }) => suspicion === 'none' || suspicion === 'alone with free keys');
    const keys = isAsked ? await locked.find(failed) : [];
    for (const key of keys) locked.waitFor(key, error);
    if (keys.length > 0) for (const waiting of failed) waiting.explained += 1;
    const unexplained = failed.filter(({ explained }) => keys.length === 0 || explained > explainedRefusals);
    const [first] = unexplained;
    if (failed.length > 1) repeatInParts(unexplained);
    else if (first !== undefined) repeatAlone(first, error);
    for (const waiting of failed) if (!slow.has(waiting)) waiting.again();
  };

  /**
   * This item needs a lock that another program holds. It is one of the item's own keys, or a lock that no key stands for.
   * The keys are waited for first.
   */
  const repeatAlone = (waiting: Waiting, error: unknown): void => {
    if (waiting.order.length === 0 || awaitLock === undefined || waiting.suspicion === 'alone with free keys') {
      repeatSlowly(waiting, error);
      return;
    }
    suspect(waiting, 'alone with free keys', 1);
    for (const key of waiting.order) locked.waitFor(key, error);
  };

  const repeatInParts = (failed: readonly Waiting[]): void => {
    const share = Math.ceil(failed.length / partsOfBatch);
    for (const waiting of failed) suspect(waiting, share > 1 ? 'in a part' : 'alone', share);
  };

  /** Raises the suspicion of an item; it is never lowered. */
  const suspect = (waiting: Waiting, suspicion: Suspicion, share: number): void => {
    if (waiting.suspicion === 'none') suspects += 1;
    if (waiting.suspicion !== 'alone with free keys') waiting.suspicion = suspicion;
    waiting.explained = 0;
    waiting.share = Math.min(waiting.share, share);
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
    areAnySuspected: () => suspects > 0,
    forget: ({ suspicion }) => {
      if (suspicion !== 'none') suspects -= 1;
    },
    lastRefusal: () => lastRefusal,
  };
}
