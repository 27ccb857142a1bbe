import type { Database } from '../../db/engine/connect.ts';
import { briefWait, isLockRefused, type LockWait } from '../../db/engine/slow_lane.ts';
import { onBehalfOf, type RequestIds, requestsServed } from '../log/request_ids.ts';
import { takeBatch } from './take_batch.ts';

/** One of a batch, to be answered once or put back: of several calls the first counts. */
export type Entry<Item, Result> = {
  readonly item: Item;
  resolve(result: Result | Promise<Result>): void;
  reject(error: unknown): void;
  /**
   * Puts it back at the head of the queue.
   *
   * @param item what it is to be from now on
   * @param after what it waits for first; where that fails, it is rejected with the same error
   */
  again(item?: Item, after?: Promise<unknown>): void;
};

/** What the items of a queue have in common, and what they lock in the database. */
export type BatchOptions<Item> = {
  /** How many go together at most. */
  readonly limit: number;
  /** Of two items with a key in common the later goes in a later batch. */
  readonly orderOf?: (item: Item) => readonly string[];
  /** What an item locks in the database besides, as keys. No batch begins beside one that takes long and locks the same. */
  readonly locksOf?: (item: Item) => readonly string[];
  /** What every item locks, and shares with others of its kind: a table. */
  readonly sharedLock?: string;
  /** Whether an item goes by itself. */
  readonly isAlone?: (item: Item) => boolean;
  /** Whether an error may be the fault of one item: then nothing was done for any, and the batch is repeated in parts. */
  readonly isOfOne?: (error: unknown) => boolean;
  /** Which keys of some items other transactions hold at the moment. */
  readonly findLocked?: (items: readonly Item[]) => Promise<readonly string[]>;
  /** Waits until a key is free, and holds nothing else meanwhile. @throws `lockNotAvailable` where it waited too long */
  readonly awaitLock?: (key: string, wait: LockWait) => Promise<unknown>;
  /** The time from the start of a batch to that of the next one of new items, in milliseconds. */
  readonly everyMs?: number;
};

/**
 * How likely it is that a batch failed for an item: it goes with others that are suspected as much, beside the batches of all that
 * are not. First in a part of the batch, then alone, and then alone after its own keys were waited for, though it was not known that
 * another program holds them.
 */
type Suspicion = (typeof suspicions)[number] | 'none';
/** Those that are suspected least are tried first, since most of them have done nothing. */
const suspicions = ['in a part', 'alone', 'alone with free keys'] as const;

/** A request that waited for a lock of another program for as long as a statement may take. Nothing was done for it. */
export class LockWaitTooLong extends Error {
  constructor(cause: unknown) {
    super('Another program holds a lock that the request needs, and did not release it in time.', { cause });
  }
}

/** How long any batch waits while many are refused a lock. */
const briefestWait: LockWait = { lockTimeoutMs: 5 };
/** How long one of suspected items waits, of which many may be tried. */
const partWait: LockWait = { lockTimeoutMs: 2, firstLockTimeoutMs: 50 };
/** In so many parts a batch is repeated of which one item is suspected. */
const partsOfBatch = 16;
/** So many of these parts are under way at once. */
const partsAtOnce = 4;
/**
 * So often an item that is refused a lock is not suspected more, where a key that is locked explains it: rows that are locked for a
 * moment only must not explain for ever what another lock is the reason of.
 */
const explainedRefusals = 3;
/** So much of each second may be lost to waits for locks that were refused. */
const lostShare = 0.1;
/** A batch that takes longer, in milliseconds, is left to itself, and the next begins beside it. */
const longMs = 1_000;
/** So many batches are left to themselves at most: each has a connection. */
const longBatches = 4;

/**
 * Does together what was asked for one by one: items that come while a batch is under way go in the next, so that an idle process
 * serves the first at once. No item joins a batch that began before it came, so that a reader sees what was committed before.
 *
 * A batch waits for a lock in the database only briefly (`briefWait`). Where another program keeps one, the batch fails, and nothing
 * of it was done: the keys that are locked are found, items that need one wait until it is free, and the others go with the next
 * batch. Where no key explains it, each item of the batch is suspected: they are repeated in smaller parts beside the batches of the
 * others, and the item that is left is repeated alone in the slow lane (db/engine/slow_lane.ts). So items wait only for locks that they
 * need, however many locks there are.
 *
 * An item that waits for a lock longer than a statement may take is refused.
 *
 * @param perform does a batch: it settles each entry, or puts it back. What it throws is for all that it has not settled.
 * @returns a function that asks for one item; it throws `LockWaitTooLong`, and what `perform` rejects it with
 */
export function inBatches<Item, Result>(
  { turn, slowLane, statementTimeoutMs }: Pick<Database, 'turn' | 'slowLane' | 'statementTimeoutMs'>,
  options: BatchOptions<Item>,
  perform: (batch: readonly Entry<Item, Result>[], wait: LockWait) => Promise<void>,
): (item: Item) => Promise<Result> {
  const { limit, orderOf = none, locksOf = none, sharedLock = '', everyMs = 0 } = options;
  const { isAlone, isOfOne, findLocked, awaitLock } = options;

  type Waiting = Entry<Item, Result> & {
    item: Item;
    order: readonly string[];
    share: number;
    suspicion: Suspicion;
    /** How often it was refused a lock, and a key that is locked explained it, since it is suspected so much. */
    explained: number;
    isReady: boolean;
    state: 'queued' | 'under way' | 'again' | 'settled';
    readonly askedBy: readonly RequestIds[];
    readonly cameAtMs: number;
    expiry: NodeJS.Timeout | undefined;
    /** Rejects it in any state. */
    readonly refuse: (error: unknown) => void;
  };

  let queue: Waiting[] = [];
  /** Keys that other programs hold. */
  const locked = new Set<string>();
  /** Batches that take long. */
  const left = new Set<readonly Waiting[]>();
  /** Parts of batches that failed, while they are repeated. */
  const parts = new Set<readonly Waiting[]>();
  /** What is repeated alone in the slow lane. */
  const slow = new Set<Waiting>();
  /** How many items are suspected. */
  let suspects = 0;
  const refusals = countRefusals();
  let lastRefusal: unknown;
  let lastStartMs = Number.NEGATIVE_INFINITY;
  let running = false;

  const run = async (): Promise<void> => {
    running = true;
    for (;;) {
      await turn();
      if (everyMs > 0) await untilDue();
      const batch = take('none');
      if (batch.length === 0) break;
      lastStartMs = performance.now();
      const performed = performBatch(batch);
      if (left.size >= longBatches) await performed;
      else if (!(await endsWithin(performed, longMs))) leave(batch, performed);
    }
    running = false;
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

  /** The next batch of items that are suspected so much, which are under way from now on. */
  const take = (suspicion: Suspicion): readonly Waiting[] => {
    const isFree = freeNow(suspicion);
    const isOfThese = (waiting: Waiting): boolean => waiting.suspicion === suspicion;
    // What must wait is given up in time, also where it only waits for another one that waits for a lock.
    const keep = (waiting: Waiting): void => {
      if (isOfThese(waiting)) expireInTime(waiting);
    };
    const batch = takeBatch(queue, limit, (waiting) => isOfThese(waiting) && isFree(waiting), keep);
    for (const waiting of batch) waiting.state = 'under way';
    if (batch.length > 0) queue = queue.filter(({ state }) => state === 'queued');
    return batch;
  };

  const leave = (batch: readonly Waiting[], performed: Promise<void>): void => {
    left.add(batch);
    void performed.then(() => {
      left.delete(batch);
      wake();
    });
    void explain(batch);
  };

  /** Where all wait for a table, which no time limit for rows ends, no more batches are to wait as this one does. */
  const explain = async (batch: readonly Waiting[]): Promise<void> => {
    if (sharedLock !== '' && (await lockedKeysOf(batch)).includes(sharedLock)) waitForLock(sharedLock, lastRefusal);
  };

  const untilDue = async (): Promise<void> => {
    const dueInMs = lastStartMs + everyMs - performance.now();
    if (dueInMs > 0 && queue.length > 0) await new Promise((end) => setTimeout(end, dueInMs));
  };

  /** Tells of an item whether it needs nothing that is locked or under way. */
  const freeNow = (suspicion: Suspicion): ((waiting: Waiting) => boolean) => {
    if (locked.size + left.size + parts.size + slow.size === 0) return () => true;
    const long = [...left].flat().filter(isUnderWay);
    const tried = [...parts].flat();
    const inUse = new Set([...long, ...tried, ...slow].flatMap(({ order }) => order));
    // Of two suspects that lock the same, the one that has it and waits would make the other one fail.
    const lockedByUs = new Set(
      (suspicion === 'none' ? long : [...long, ...tried]).flatMap(({ item }) => locksOf(item)),
    );
    return ({ order, item }) =>
      !locked.has(sharedLock) &&
      order.every((key) => !inUse.has(key) && !locked.has(key)) &&
      locksOf(item).every((key) => !lockedByUs.has(key) && !locked.has(key));
  };

  const performBatch = async (batch: readonly Waiting[]): Promise<void> => {
    const isSuspected = batch.some(({ suspicion }) => suspicion !== 'none');
    const fastWait = refusals.areMany() ? briefestWait : briefWait;
    const wait = isSuspected ? partWait : fastWait;
    try {
      await performFor(batch, wait);
    } catch (error) {
      if (isLockRefused(error) && !isSuspected) refusals.note(wait.lockTimeoutMs);
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

  /** Nothing was done for these. Never rejects. */
  const afterFailure = async (failed: readonly Waiting[], error: unknown): Promise<void> => {
    if (!isLockRefused(error)) {
      if (failed.length > 1 && isOfOne?.(error)) repeatInParts(failed);
      else for (const { reject } of failed) reject(error);
      return;
    }
    lastRefusal = error;
    // Of parts it was asked just before, when the whole batch failed.
    const isAsked = failed.some(({ suspicion }) => suspicion === 'none' || suspicion === 'alone with free keys');
    const keys = isAsked ? await lockedKeysOf(failed) : [];
    for (const key of keys) waitForLock(key, error);
    if (keys.length > 0) for (const waiting of failed) waiting.explained += 1;
    const unexplained = failed.filter(({ explained }) => keys.length === 0 || explained > explainedRefusals);
    const [first] = unexplained;
    if (failed.length > 1) repeatInParts(unexplained);
    else if (first !== undefined) repeatAlone(first, error);
    for (const waiting of failed) if (!slow.has(waiting)) waiting.again();
  };

  /** The item that a lock keeps waiting: of its own keys, which are waited for first, or one that no key tells of. */
  const repeatAlone = (waiting: Waiting, error: unknown): void => {
    if (waiting.order.length === 0 || awaitLock === undefined || waiting.suspicion === 'alone with free keys') {
      repeatSlowly(waiting, error);
      return;
    }
    suspect(waiting, 'alone with free keys', 1);
    for (const key of waiting.order) waitForLock(key, error);
  };

  const lockedKeysOf = async (failed: readonly Waiting[]): Promise<readonly string[]> => {
    if (findLocked === undefined) return [];
    const needed = new Set([sharedLock, ...failed.flatMap(({ order, item }) => [...order, ...locksOf(item)])]);
    // Where it cannot be found out, it is as if nothing had been found.
    const found = await findLocked(failed.map(({ item }) => item)).catch(() => []);
    return found.filter((key) => needed.has(key));
  };

  const repeatInParts = (failed: readonly Waiting[]): void => {
    const share = Math.ceil(failed.length / partsOfBatch);
    for (const waiting of failed) suspect(waiting, share > 1 ? 'in a part' : 'alone', share);
  };

  /** It never becomes less suspected. */
  const suspect = (waiting: Waiting, suspicion: Suspicion, share: number): void => {
    if (waiting.suspicion === 'none') suspects += 1;
    if (waiting.suspicion !== 'alone with free keys') waiting.suspicion = suspicion;
    waiting.explained = 0;
    waiting.share = Math.min(waiting.share, share);
    waiting.again();
  };

  /** Until the key is free, the items that need it stay in the queue. */
  const waitForLock = (key: string, error: unknown): void => {
    if (locked.has(key) || awaitLock === undefined) return;
    locked.add(key);
    const isNeeded = ({ order, item }: Waiting): boolean =>
      key === sharedLock || order.includes(key) || locksOf(item).includes(key);
    const isWanted = () => queue.some(isNeeded) || (key === sharedLock && left.size > 0);
    const freed = slowLane.attempt((wait) => awaitLock(key, wait), { holdsOthers: false, isWanted, refusal: error });
    // Where it fails otherwise, the items that need it will tell by what.
    const end = (): void => {
      locked.delete(key);
      wake();
    };
    freed.then(end, end);
  };

  const repeatSlowly = (waiting: Waiting, error: unknown): void => {
    slow.add(waiting);
    const repeated = slowLane.attempt((wait) => performFor([waiting], wait), {
      holdsOthers: true,
      endsAtMs: performance.now() + remainingMs(waiting),
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

  const remainingMs = ({ cameAtMs }: Waiting): number =>
    statementTimeoutMs === 0 ? Number.POSITIVE_INFINITY : cameAtMs + statementTimeoutMs - performance.now();

  /** What is being done when its time is over may still succeed; put back, it is given up as soon as it must wait again. */
  const expireInTime = (waiting: Waiting): void => {
    if (statementTimeoutMs === 0 || waiting.expiry !== undefined) return;
    const expire = (): void => {
      waiting.expiry = undefined;
      if (waiting.state === 'queued') giveUp(waiting, new LockWaitTooLong(lastRefusal));
    };
    waiting.expiry = setTimeout(expire, Math.max(0, remainingMs(waiting)));
  };

  /** Rejects an item of the queue. */
  const giveUp = (waiting: Waiting, error: unknown): void => {
    waiting.refuse(error);
    queue = queue.filter((other) => other !== waiting);
    wake();
  };

  return (item) =>
    new Promise((resolve, reject) => {
      const settle = (): void => {
        if (waiting.suspicion !== 'none' && waiting.state !== 'settled') suspects -= 1;
        waiting.state = 'settled';
        clearTimeout(waiting.expiry);
      };
      const waiting: Waiting = {
        item,
        order: orderOf(item),
        share: isAlone?.(item) ? 1 : limit,
        suspicion: 'none',
        explained: 0,
        isReady: true,
        state: 'queued',
        askedBy: requestsServed(),
        cameAtMs: performance.now(),
        expiry: undefined,
        resolve: (result) => {
          if (!isUnderWay(waiting)) return;
          settle();
          resolve(result);
        },
        reject: (error) => {
          if (isUnderWay(waiting)) waiting.refuse(error);
        },
        refuse: (error) => {
          settle();
          reject(error);
        },
        again: (next = waiting.item, after = undefined) => {
          if (!isUnderWay(waiting)) return;
          waiting.state = 'again';
          waiting.item = next;
          if (after === undefined) return;
          waiting.isReady = false;
          after.then(
            () => {
              waiting.isReady = true;
              wake();
            },
            (error: unknown) => giveUp(waiting, error),
          );
        },
      };
      queue.push(waiting);
      wake();
    });
}

const none = (): readonly string[] => [];

const isUnderWay = ({ state }: { readonly state: string }): boolean => state === 'under way';

/** Tells whether lately more time was lost to locks that were refused than may be. */
function countRefusals() {
  let lostMs = 0;
  let countedAtMs = 0;
  const count = (addedMs: number): void => {
    const nowMs = performance.now();
    lostMs = Math.max(0, lostMs - lostShare * (nowMs - countedAtMs)) + addedMs;
    countedAtMs = nowMs;
  };
  return {
    note: count,
    areMany: (): boolean => {
      if (lostMs > 0) count(0);
      return lostMs > lostShare * 1_000;
    },
  };
}

/** Whether work that never rejects ends in time; in any case it goes on. */
function endsWithin(work: Promise<void>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    void work.then(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
