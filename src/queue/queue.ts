import type { Database } from '../../db/engine/connect.ts';
import { briefWait, type LockWait } from '../../db/engine/slow_lane.ts';
import { onBehalfOf, requestsServed } from '../log/log.ts';
import { type BatchOptions, type Entry, isUnderWay, openQueued, type Queued, takeBatch } from './items.ts';
import { type LockedKeys, openFailedItems, openLockedKeys } from './locks.ts';

/** How many items of a failed batch are retried alone at the same time. */
const aloneAtOnce = 4;
/** How long an item that is retried alone waits for locks; there may be many such items. */
const aloneWait: LockWait = { lockTimeoutMs: 2, firstLockTimeoutMs: 50 };
/** If a batch takes longer, in milliseconds, the next batch starts beside it. */
const longMs = 1_000;
/** The largest number of long batches at the same time. Each batch occupies a connection. */
const longBatches = 4;

/**
 * Lets items that are requested one by one share a batch. Items that arrive while a batch is under way go with the next batch,
 * and an idle process serves the first item at once. No item joins a batch that started before the item arrived: so a reader
 * sees everything that was committed before its request.
 *
 * A batch waits for a lock in the database only briefly (`briefWait`). If another program holds the lock for longer, the whole
 * batch fails, and nothing of it was done. Then each item is in one of three states, so that an item waits only for locks that
 * it needs, however many locks there are:
 *
 * | state | next state |
 * | --- | --- |
 * | in a batch with others | settled; *waits for a key* if the database names a locked key that the item needs; otherwise, if its batch had others, *alone* beside their batches, and if it had none, *slow lane* |
 * | waits for a key, in the queue | a batch when the key is free (alone if it was *alone*). After three such refusals in a row: *alone* |
 * | alone: a separate batch with a brief wait, then the slow lane (db/engine/slow_lane.ts) | settled; *waits for a key*; *slow lane*, which repeats it until it is settled |
 *
 * In each state, an item that waits for a lock longer than a statement may take is rejected.
 *
 * While a batch is performed, the next one may be prepared (openWorkAhead).
 *
 * @param perform does a batch: it settles each entry or puts it back. What it throws applies to all entries that it has
 *   not settled.
 * @returns a function that requests one item. It throws `LockWaitTooLong`, or the error with which `perform` rejects the item.
 */
export function inBatches<Item, Result>(
  {
    pollSockets,
    slowLane,
    statementTimeoutMs,
    engine,
  }: Pick<Database, 'pollSockets' | 'slowLane' | 'statementTimeoutMs' | 'engine'>,
  options: BatchOptions<Item, Result>,
  perform: (batch: readonly Entry<Item, Result>[], wait: LockWait) => Promise<void>,
): (item: Item) => Promise<Result> {
  const { limit, conflictKeysOf = none, locksOf = none, sharedLock = '', everyMs = 0 } = options;
  const { isAlone, weightOf } = options;
  type Waiting = Queued<Item, Result>;

  let queue: Waiting[] = [];
  /** Long batches. */
  const long = new Set<readonly Waiting[]>();
  /** Items that are being retried alone. */
  const alone = new Set<Waiting>();
  let lastStartMs = Number.NEGATIVE_INFINITY;
  let running = false;
  /** The batch that the next one waits for. */
  let performing: readonly Waiting[] = [];

  const needsOf = ({ conflictKeys, item }: Pick<Waiting, 'conflictKeys' | 'item'>): readonly string[] => [
    sharedLock,
    ...conflictKeys,
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
    let prepared: readonly Waiting[] = [];
    for (;;) {
      if (prepared.length === 0) await untilGathered();
      // No `await` may come between this check of the queue and the end of the loop: an item that arrived then would start no
      // run, and would stay in the queue.
      const batch = prepared.length > 0 ? prepared : take(false);
      if (batch.length === 0) break;
      lastStartMs = performance.now();
      performing = batch;
      const performed = performBatch(batch);
      ahead.begin();
      if (long.size >= longBatches) await performed;
      else if (!(await endsWithin(performed, longMs))) goOnBeside(batch, performed);
      prepared = ahead.end();
    }
    running = false;
  };

  const untilGathered = async (): Promise<void> => {
    await gather();
    const dueInMs = lastStartMs + everyMs - performance.now();
    if (everyMs > 0 && dueInMs > 0 && queue.length > 0) await new Promise((end) => setTimeout(end, dueInMs));
  };

  const gather = async (): Promise<void> => {
    // If one item waits and the batch before had one item, clients mostly send one request at a time: gathering would only cost time.
    if (engine === 'postgresql' && queue.length < 2 && performing.length < 2) return;
    await gatherMore(pollSockets, () => queue.length);
  };

  const wake = (): void => {
    if (failures.areAnyAlone()) tryAlone();
    if (!running) void run();
  };

  const tryAlone = (): void => {
    while (alone.size < aloneAtOnce) {
      const [waiting] = take(true);
      if (waiting === undefined) return;
      alone.add(waiting);
      void performBatch([waiting]).then(() => {
        alone.delete(waiting);
        wake();
      });
    }
  };

  /** Takes the next batch from the queue, or the next item that must be retried alone. */
  const take = (isAlone: boolean): readonly Waiting[] => {
    const batch = next(isAlone);
    start(batch);
    return batch;
  };

  /** @param before a batch that will have ended before the next one begins */
  const next = (isAlone: boolean, before: readonly Waiting[] = []): readonly Waiting[] => {
    const isFree = freeBeside({ locked, sharedLock, locksOf }, { isAlone, long, alone, slow: failures.slow, before });
    const isOfThese = (waiting: Waiting): boolean => waiting.isAlone === isAlone;
    // Also an item that only waits for an earlier item must be rejected in time.
    const keep = (waiting: Waiting): void => {
      if (isOfThese(waiting)) waiting.expireInTime();
    };
    return takeBatch(queue, limit, (waiting) => isOfThese(waiting) && isFree(waiting), keep);
  };

  const start = (batch: readonly Waiting[]): void => {
    for (const waiting of batch) waiting.state = 'under way';
    if (batch.length > 0) queue = queue.filter(({ state }) => state === 'queued');
  };

  const ahead = openWorkAhead<Item, Result, Waiting>(options, {
    gather,
    waiting: () => queue,
    next: () => next(false, performing),
    start,
  });

  const goOnBeside = (batch: readonly Waiting[], performed: Promise<void>): void => {
    long.add(batch);
    putBack([]);
    void performed.then(() => {
      long.delete(batch);
      wake();
    });
    // If the batch waits for the lock of a table, no other batch may start before the table is free.
    if (sharedLock !== '') void locked.waitIfLocked(sharedLock, batch, failures.lastRefusal);
  };

  const performBatch = async (batch: readonly Waiting[]): Promise<void> => {
    const isAlone = batch.some((waiting) => waiting.isAlone);
    try {
      await performFor(batch, isAlone ? aloneWait : briefWait);
    } catch (error) {
      await failures.goOn(batch.filter(isUnderWay), error);
    }
    const again = batch.filter(({ state }) => state === 'again');
    if (again.length > 0) putBack(again);
  };

  const performFor = async (batch: readonly Waiting[], wait: LockWait): Promise<void> => {
    const requestedBy = batch.flatMap((waiting) => waiting.requestedBy);
    await onBehalfOf(requestedBy, () => perform(batch, wait));
    for (const { reject } of batch.filter(isUnderWay)) reject(new Error('A batch ended without an answer.'));
  };

  /** Puts items back to the head of the queue. The items of the prepared batch go behind these items: both may share a batch. */
  const putBack = (again: readonly Waiting[]): void => {
    const items = [...again, ...ahead.drop()];
    for (const waiting of items) waiting.state = 'queued';
    queue.unshift(...items);
    wake();
  };

  const failures = openFailedItems<Item, Result>(slowLane, options, { locked, performFor, putBack, onEnd: wake });

  /** Rejects an item, and takes it out of the queue. */
  const giveUp = (waiting: Waiting, error: unknown): void => {
    waiting.refuse(error);
    queue = queue.filter((other) => other !== waiting);
    wake();
  };

  return (item) =>
    new Promise((resolve, reject) => {
      const waiting = openQueued<Item, Result>(
        {
          item,
          conflictKeys: conflictKeysOf(item),
          share: isAlone?.(item) ? 1 : limit,
          weight: weightOf?.(item) ?? 1,
          requestedBy: requestsServed(),
        },
        statementTimeoutMs,
        {
          // The work of the requester with the answer takes time. If the next batch is ready, it begins first.
          resolve: (result) => (ahead.isReady() ? setImmediate(resolve, result) : resolve(result)),
          reject,
          onSettled: failures.forget,
          onReady: wake,
          giveUp,
          onExpired: (expired) => giveUp(expired, slowLane.tooLong(failures.lastRefusal())),
        },
      );
      queue.push(waiting);
      wake();
      ahead.notice(item);
    });
}

const none = (): readonly string[] => [];

/** An item, and what it needs. */
type NeedingNow<Item> = Pick<Queued<Item, unknown>, 'item' | 'conflictKeys' | 'state'>;

/** The work at the same time as the next batch, or before it. */
type Others<Item> = {
  /** Whether the next batch is an item that is retried alone. */
  readonly isAlone: boolean;
  readonly long: Iterable<readonly NeedingNow<Item>[]>;
  readonly alone: Iterable<NeedingNow<Item>>;
  readonly slow: Iterable<NeedingNow<Item>>;
  /** A batch that will have ended before the next one begins: only its conflict keys matter. */
  readonly before: readonly NeedingNow<Item>[];
};

/** Returns a check whether no lock that an item needs is held or in use now. */
function freeBeside<Item>(
  {
    locked,
    sharedLock,
    locksOf,
  }: Required<Pick<BatchOptions<Item>, 'locksOf' | 'sharedLock'>> & {
    readonly locked: LockedKeys<Item>;
  },
  { isAlone, long, alone, slow, before }: Others<Item>,
): (item: NeedingNow<Item>) => boolean {
  const slowest = [...long].flat().filter(isUnderWay);
  const others = [...slowest, ...alone, ...slow, ...before];
  if (!locked.areAny() && others.length === 0) return () => true;
  const inUse = new Set(others.flatMap(({ conflictKeys }) => conflictKeys));
  // Two items that are retried alone must not need the same lock: the item that gets the lock and waits for a further one would make the
  // other item fail.
  const lockedByUs = new Set((isAlone ? [...slowest, ...alone] : slowest).flatMap(({ item }) => locksOf(item)));
  return ({ conflictKeys, item }) =>
    !locked.has(sharedLock) &&
    conflictKeys.every((key) => !inUse.has(key) && !locked.has(key)) &&
    locksOf(item).every((key) => !lockedByUs.has(key) && !locked.has(key));
}

/** A batch waits for more items for at most this number of iterations of the event loop, and none begins after this time. */
const [mostIterations, mostGatherMs] = [5, 2];

/**
 * Reads the requests that wait at the sockets, and continues as long as more arrive, so that they share a batch. The embedded database
 * runs in this process, which reads requests at no other time: without this each batch would have one item.
 *
 * @param count how many items wait
 */
async function gatherMore(pollSockets: () => Promise<void>, count: () => number): Promise<void> {
  const endMs = performance.now() + mostGatherMs;
  for (
    let iterations = 0, before = -1;
    iterations < mostIterations && count() > before && performance.now() < endMs;
    iterations += 1
  ) {
    before = count();
    await pollSockets();
  }
}

/** Whether work that never rejects ends in time. The work continues in any case. */
function endsWithin(work: Promise<void>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    void work.then(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}

/** The batch that is prepared while the one before it is performed, if there is one. */
type WorkAhead<Item, Waiting> = {
  /** A batch is performed from now on. */
  begin(): void;
  /** The queue does not wait for the batch any more. @returns the batch that was prepared meanwhile; empty if there is none */
  end(): readonly Waiting[];
  /** An item arrived. If the item is worth it, the next batch is gathered and prepared. */
  notice(item: Item): void;
  /** Drops the prepared batch. @returns the items that must go back to the queue */
  drop(): readonly Waiting[];
  isReady(): boolean;
};

/**
 * @param options.ahead without it nothing is prepared
 * @param queue.gather resolves when the requests that wait were read
 * @param queue.waiting the items in the queue
 * @param queue.next the next batch as it would be now; none of its items waits for one that is being performed
 * @param queue.start takes a batch from the queue
 */
function openWorkAhead<Item, Result, Waiting extends Entry<Item, Result>>(
  { ahead }: Pick<BatchOptions<Item, Result>, 'ahead'>,
  queue: {
    gather(): Promise<void>;
    waiting(): readonly Waiting[];
    next(): readonly Waiting[];
    start(batch: readonly Waiting[]): void;
  },
): WorkAhead<Item, Waiting> {
  let isPerforming = false;
  let isGathering = false;
  let ready: readonly Waiting[] = [];

  const prepareNext = async (): Promise<void> => {
    if (isGathering || ready.length > 0) return;
    isGathering = true;
    await queue.gather();
    isGathering = false;
    if (!isPerforming) return;
    const batch = queue.next();
    if (batch.length === 0 || ahead?.prepare(batch) !== true) return;
    queue.start(batch);
    ready = batch;
  };
  const drop = (): readonly Waiting[] => {
    const dropped = ready;
    ready = [];
    return dropped;
  };
  return {
    begin: () => {
      isPerforming = true;
      if (ahead !== undefined && queue.waiting().some(({ item }) => ahead.isWorthIt(item))) void prepareNext();
    },
    end: () => {
      isPerforming = false;
      return drop();
    },
    notice: (item) => {
      if (isPerforming && ahead?.isWorthIt(item)) void prepareNext();
    },
    drop,
    isReady: () => ready.length > 0,
  };
}
