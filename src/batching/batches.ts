import type { Database } from '../../db/engine/connect.ts';
import { briefWait, isLockRefused, type LockWait, LockWaitTooLong } from '../../db/engine/slow_lane.ts';
import { onBehalfOf, requestsServed } from '../log/request_ids.ts';
import type { BatchOptions } from './batch_options.ts';
import { openLockedKeys } from './locked_keys.ts';
import { measureLostTime } from './lost_time.ts';
import { type Entry, isUnderWay, openQueued, type Queued, type Suspicion, suspicions } from './queued.ts';
import { takeBatch } from './take_batch.ts';

export type { BatchOptions } from './batch_options.ts';
export type { Entry } from './queued.ts';

/** The limit for each lock while many waits fail. */
const briefestWait: LockWait = { lockTimeoutMs: 5 };
/** The limits for suspected items. There may be many of them to try. */
const partWait: LockWait = { lockTimeoutMs: 2, firstLockTimeoutMs: 50 };
/** A failed batch is repeated in this many parts. */
const partsOfBatch = 16;
/** The number of parts that are repeated at the same time. */
const partsAtOnce = 4;
/**
 * After this many refusals that a locked key explains, an item is suspected all the same: a row that is often locked for
 * a moment would otherwise hide another lock for ever.
 */
const explainedRefusals = 3;
/** A batch waits for more items for at most this number of turns of the event loop. */
const mostTurns = 5;
/** If a batch takes longer, in milliseconds, the next batch starts beside it. */
const longMs = 1_000;
/** The largest number of long batches beside each other. Each occupies a connection. */
const longBatches = 4;

/**
 * Lets items that are asked for one by one share a batch. Items that come while a batch is under way go with the next
 * one, so an idle process serves the first item at once. No item joins a batch that has started before the item came, so
 * a reader sees what was committed before.
 *
 * A batch waits for a lock in the database only briefly (`briefWait`). If another program keeps the lock, the whole batch
 * fails, and nothing of it was done. The database then tells which keys are locked: items that need one of them stay in
 * the queue until it is free, and the others go with the next batch. If no locked key explains the failure, every item of
 * the batch is suspected. Suspected items are repeated in smaller parts beside the batches of the others, then one by
 * one, and an item that fails alone is repeated in the slow lane (db/engine/slow_lane.ts). So an item waits only for locks
 * that it needs, however many locks there are.
 *
 * An item that waits for a lock longer than a statement may take is rejected.
 *
 * @param perform does a batch: it settles each entry or puts it back. What it throws applies to all entries that it has
 *   not settled.
 * @returns a function that asks for one item. It throws `LockWaitTooLong`, and what `perform` rejects the item with.
 */
export function inBatches<Item, Result>(
  { turn, slowLane, statementTimeoutMs }: Pick<Database, 'turn' | 'slowLane' | 'statementTimeoutMs'>,
  options: BatchOptions<Item>,
  perform: (batch: readonly Entry<Item, Result>[], wait: LockWait) => Promise<void>,
): (item: Item) => Promise<Result> {
  const { limit, orderOf = none, locksOf = none, sharedLock = '', everyMs = 0 } = options;
  const { isAlone, isOfOne, awaitLock } = options;

  type Waiting = Queued<Item, Result>;

  let queue: Waiting[] = [];
  /** Long batches. */
  const long = new Set<readonly Waiting[]>();
  /** Parts of failed batches that are being repeated. */
  const parts = new Set<readonly Waiting[]>();
  /** Items that are being repeated alone in the slow lane. */
  const slow = new Set<Waiting>();
  /** The number of suspected items. */
  let suspects = 0;
  const lostTime = measureLostTime();
  let lastRefusal: unknown;
  let lastStartMs = Number.NEGATIVE_INFINITY;
  let running = false;

  const needsOf = ({ order, item }: Pick<Waiting, 'order' | 'item'>): readonly string[] => [
    sharedLock,
    ...order,
    ...locksOf(item),
  ];
  const locked = openLockedKeys<Item>(slowLane, options, {
    needsOf,
    // Items that wait for the lock of a table may be in a long batch, not in the queue.
    isWanted: (key) => queue.some((waiting) => needsOf(waiting).includes(key)) || (key === sharedLock && long.size > 0),
    onFree: () => wake(),
  });

  const run = async (): Promise<void> => {
    running = true;
    for (;;) {
      await gather();
      if (everyMs > 0) await untilDue();
      const batch = take('none');
      if (batch.length === 0) break;
      lastStartMs = performance.now();
      const performed = performBatch(batch);
      if (long.size >= longBatches) await performed;
      else if (!(await endsWithin(performed, longMs))) goOnBeside(batch, performed);
    }
    running = false;
  };

  /** Reads the requests that wait at the sockets, and goes on as long as more come, so that they share a batch. */
  const gather = async (): Promise<void> => {
    for (let turns = 0, before = -1; turns < mostTurns && queue.length > before; turns += 1) {
      before = queue.length;
      await turn();
    }
  };

  const wake = (): void => {
    if (suspects > 0) for (const suspicion of suspicions) tryParts(suspicion);
    if (!running) void run();
  };

  const tryParts = (suspicion: Suspicion): void => {
    while (parts.size < partsAtOnce && queue.some((waiting) => waiting.suspicion === suspicion)) {
      const part = take(suspicion);
      if (part.length === 0) return;
      parts.add(part);
      void performBatch(part).then(() => {
        parts.delete(part);
        wake();
      });
    }
  };

  /** Takes the next batch of items with this suspicion from the queue. */
  const take = (suspicion: Suspicion): readonly Waiting[] => {
    const isFree = freeNow(suspicion);
    const isOfThese = (waiting: Waiting): boolean => waiting.suspicion === suspicion;
    // Also an item that only waits for an earlier item must be rejected in time.
    const keep = (waiting: Waiting): void => {
      if (isOfThese(waiting)) waiting.expireInTime();
    };
    const batch = takeBatch(queue, limit, (waiting) => isOfThese(waiting) && isFree(waiting), keep);
    for (const waiting of batch) waiting.state = 'under way';
    if (batch.length > 0) queue = queue.filter(({ state }) => state === 'queued');
    return batch;
  };

  const goOnBeside = (batch: readonly Waiting[], performed: Promise<void>): void => {
    long.add(batch);
    void performed.then(() => {
      long.delete(batch);
      wake();
    });
    void findTableLock(batch);
  };

  /** If a long batch waits for the lock of a table, no other batch may start before the table is free. */
  const findTableLock = async (batch: readonly Waiting[]): Promise<void> => {
    if (sharedLock === '') return;
    const keys = await locked.find(batch);
    if (keys.includes(sharedLock)) locked.waitFor(sharedLock, lastRefusal);
  };

  const untilDue = async (): Promise<void> => {
    const dueInMs = lastStartMs + everyMs - performance.now();
    if (dueInMs > 0 && queue.length > 0) await new Promise((end) => setTimeout(end, dueInMs));
  };

  /** Returns a check whether an item needs nothing that is locked or in use now. */
  const freeNow = (suspicion: Suspicion): ((waiting: Waiting) => boolean) => {
    if (!locked.areAny() && long.size + parts.size + slow.size === 0) return () => true;
    const slowest = [...long].flat().filter(isUnderWay);
    const tried = [...parts].flat();
    const inUse = new Set([...slowest, ...tried, ...slow].flatMap(({ order }) => order));
    // If two suspected items lock the same, the one that gets the lock and waits for another would make the other fail.
    const lockedByUs = new Set(
      (suspicion === 'none' ? slowest : [...slowest, ...tried]).flatMap(({ item }) => locksOf(item)),
    );
    return ({ order, item }) =>
      !locked.has(sharedLock) &&
      order.every((key) => !inUse.has(key) && !locked.has(key)) &&
      locksOf(item).every((key) => !lockedByUs.has(key) && !locked.has(key));
  };

  const performBatch = async (batch: readonly Waiting[]): Promise<void> => {
    const isSuspected = batch.some(({ suspicion }) => suspicion !== 'none');
    const fastWait = lostTime.isTooMuch() ? briefestWait : briefWait;
    const wait = isSuspected ? partWait : fastWait;
    try {
      await performFor(batch, wait);
    } catch (error) {
      if (isLockRefused(error) && !isSuspected) lostTime.add(wait.lockTimeoutMs);
      await afterFailure(batch.filter(isUnderWay), error);
    }
    const again = batch.filter(({ state }) => state === 'again');
    if (again.length > 0) putBack(again);
  };

  const performFor = async (batch: readonly Waiting[], wait: LockWait): Promise<void> => {
    const askedBy = batch.flatMap((waiting) => waiting.askedBy);
    await onBehalfOf(askedBy, () => perform(batch, wait));
    for (const { reject } of batch.filter(isUnderWay)) reject(new Error('A batch ended without an answer.'));
  };

  /** Decides how to go on with items of a batch for which nothing was done. Never rejects. */
  const afterFailure = async (failed: readonly Waiting[], error: unknown): Promise<void> => {
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
    const repeated = slowLane.attempt((wait) => performFor([waiting], wait), {
      holdsOthers: true,
      endsAtMs: performance.now() + waiting.remainingMs(),
      refusal: error,
    });
    const end = (): void => {
      slow.delete(waiting);
      if (waiting.state === 'again') putBack([waiting]);
      wake();
    };
    repeated.then(end, (error: unknown) => {
      waiting.reject(isLockRefused(error) ? new LockWaitTooLong(error) : error);
      end();
    });
  };

  const putBack = (again: readonly Waiting[]): void => {
    for (const waiting of again) waiting.state = 'queued';
    queue.unshift(...again);
    wake();
  };

  /** Rejects an item, and takes it out of the queue. */
  const giveUp = (waiting: Waiting, error: unknown): void => {
    waiting.refuse(error);
    queue = queue.filter((other) => other !== waiting);
    wake();
  };

  return (item) =>
    new Promise((resolve, reject) => {
      const waiting = openQueued<Item, Result>(
        { item, order: orderOf(item), share: isAlone?.(item) ? 1 : limit, askedBy: requestsServed() },
        statementTimeoutMs,
        {
          resolve,
          reject,
          onSettled: ({ suspicion }) => {
            if (suspicion !== 'none') suspects -= 1;
          },
          onReady: wake,
          giveUp,
          onExpired: (expired) => giveUp(expired, new LockWaitTooLong(lastRefusal)),
        },
      );
      queue.push(waiting);
      wake();
    });
}

const none = (): readonly string[] => [];

/** Whether work that never rejects ends in time. It goes on in any case. */
function endsWithin(work: Promise<void>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    void work.then(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
