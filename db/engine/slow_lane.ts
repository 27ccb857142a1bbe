import { CommitsUnconfirmed, isLockRefused, LockWaitTooLong } from './failures.ts';

/** How a transaction waits for locks, and on which connections. */
export type LockWait = {
  /** How long it waits for each lock, in milliseconds. */
  readonly lockTimeoutMs: number;
  /**
   * A longer limit for the locks of providers. These locks are taken first: the transaction holds no other lock while it waits for them.
   */
  readonly firstLockTimeoutMs?: number;
  /**
   * Whether it uses one of the few connections of the slow lane, so that other requests do not lack a connection while
   * it waits.
   */
  readonly isSlow?: boolean;
};

/**
 * How long a transaction waits for a lock on the connections that all requests share. Longer waits belong to the slow
 * lane.
 */
export const briefWait: LockWait = { lockTimeoutMs: 20 };

/** How a transaction is repeated in the slow lane, and when it fails. */
export type Patience = {
  /**
   * Whether the transaction holds other locks while it waits for one. Then its attempts are short, and all such
   * transactions together spend only a small part of the time in attempts that fail. In the rest of the time other
   * transactions can get those locks.
   */
  readonly holdsOthers: boolean;
  /** Whether the result is still wanted; called after each failed attempt. */
  readonly isWanted?: () => boolean;
  /**
   * When the transaction fails, by `performance.now()`. An attempt that is under way at that time may still
   * succeed.
   */
  readonly endsAtMs?: number;
  /** The error by which the transaction was refused a lock before it was handed to the slow lane. */
  readonly refusal: unknown;
};

/**
 * Where transactions wait for locks that other programs hold: on few connections, however many transactions there are.
 */
export type SlowLane = {
  /**
   * Repeats a transaction until it gets its locks.
   *
   * @throws what the transaction throws; the error of the last refused lock once the result is no longer wanted, or its
   *   time is over.
   */
  attempt<T>(transaction: (wait: LockWait) => Promise<T>, patience: Patience): Promise<T>;
  /**
   * The error of a request that has waited for a lock until its time was over: `LockWaitTooLong`, or `CommitsUnconfirmed` where the lock
   * is held by a commit that waits for a standby.
   *
   * @param refusal the error by which the lock was refused last
   */
  tooLong(refusal: unknown): Error;
};

/** How many transactions of the slow lane run at the same time, each on a separate connection. */
export const slowConnections = 4;
/**
 * How many of the connections serve transactions that were already refused once. The other connections are reserved for new
 * transactions, whose locks may be held for a short time only.
 */
const longWaits = 2;
/** The longest wait of one attempt, while no other transaction needs its connection. */
const longestWaitMs = 1_000;
/** The shortest wait of one attempt, however many other transactions need its connection. */
const shortestWaitMs = 5;
/**
 * How long transactions that will hold other locks wait for their first locks: the locks of providers, which many
 * transactions write.
 */
const firstWaitMs = 100;
/**
 * The time in milliseconds that all new transactions share for their waits, and likewise all that hold other locks.
 * Each waits for `shortestWaitMs` or longer.
 */
const sharedWaitMs = 200;
/** A failed attempt that held other locks is followed by a pause, which is this many times as long as the attempt. */
const pauseFactor = 4;
/** The longest such pause, in milliseconds. */
const longestPauseMs = 200;

/**
 * Transactions that hold no other lock share the connections fairly: if there are more transactions than connections,
 * each attempt waits for a shorter time and then goes to the end of the queue. So a transaction whose lock is free
 * again runs soon, even while many other transactions wait for locks that are still held. New transactions come first.
 *
 * Transactions that hold other locks run one after the other. After an attempt that fails there is a pause; after an
 * attempt that succeeds, the next one begins at once.
 *
 * @param isUnconfirmed whether commits wait for a standby now
 */
export function openSlowLane(isUnconfirmed: () => boolean = () => false): SlowLane {
  type Attempt = { readonly run: (wait: LockWait) => Promise<'over' | 'refused'>; isOver: boolean };
  /** Transactions that hold no other lock: `fresh` before their first attempt, `retried` after it. */
  const fresh: Attempt[] = [];
  const retried: Attempt[] = [];
  /** Transactions that hold other locks. The two queues alternate, so that neither of them delays the other. */
  const freshHolders: Attempt[] = [];
  const triedHolders: Attempt[] = [];
  let areTriedNext = false;
  let running = 0;
  let runningLong = 0;
  let isHolding = false;

  const start = (): void => {
    startHolder();
    for (;;) {
      const isNew = fresh.length > 0;
      // One connection is kept for transactions that hold other locks.
      if (running >= slowConnections - 1 || (!isNew && runningLong >= longWaits)) return;
      const next = isNew ? fresh.shift() : retried.shift();
      if (next === undefined) return;
      if (!next.isOver) void wait(next, isNew);
    }
  };

  const wait = async (next: Attempt, isNew: boolean): Promise<void> => {
    running += 1;
    if (!isNew) runningLong += 1;
    const longMs = Math.round((longestWaitMs * longWaits) / Math.max(retried.length + runningLong, longWaits));
    const lockTimeoutMs = isNew ? briefShare(fresh.length) : Math.max(shortestWaitMs, longMs);
    if ((await next.run({ lockTimeoutMs, isSlow: true })) === 'refused') retried.push(next);
    if (!isNew) runningLong -= 1;
    running -= 1;
    start();
  };

  const startHolder = (): void => {
    if (isHolding) return;
    const [first, second] = areTriedNext ? [triedHolders, freshHolders] : [freshHolders, triedHolders];
    const next = first.shift() ?? second.shift();
    if (next === undefined) return;
    areTriedNext = !areTriedNext;
    if (next.isOver) startHolder();
    else void hold(next);
  };

  const hold = async (next: Attempt): Promise<void> => {
    isHolding = true;
    const startedMs = performance.now();
    const end = (): void => {
      isHolding = false;
      startHolder();
    };
    const lockTimeoutMs = briefShare(freshHolders.length + triedHolders.length);
    if ((await next.run({ lockTimeoutMs, firstLockTimeoutMs: firstWaitMs, isSlow: true })) === 'over') {
      end();
      return;
    }
    triedHolders.push(next);
    setTimeout(end, Math.min(longestPauseMs, pauseFactor * (performance.now() - startedMs)));
  };

  return {
    tooLong: (refusal) => (isUnconfirmed() ? new CommitsUnconfirmed() : new LockWaitTooLong(refusal)),
    attempt: <T>(transaction: (wait: LockWait) => Promise<T>, patience: Patience) =>
      new Promise<T>((resolve, reject) => {
        const { holdsOthers, isWanted = () => true, endsAtMs = Number.POSITIVE_INFINITY } = patience;
        let { refusal } = patience;
        let isUnderWay = false;
        const isLate = (): boolean => performance.now() >= endsAtMs;
        const giveUp = (error: unknown): void => {
          over();
          reject(error);
        };
        const timer = Number.isFinite(endsAtMs)
          ? setTimeout(() => isUnderWay || giveUp(refusal), Math.max(0, endsAtMs - performance.now()))
          : undefined;
        const over = (): void => {
          clearTimeout(timer);
          attempt.isOver = true;
        };
        const attempt: Attempt = {
          isOver: false,
          run: async (wait) => {
            isUnderWay = true;
            try {
              resolve(await transaction(wait));
              over();
            } catch (error) {
              isUnderWay = false;
              if (isLockRefused(error) && isWanted() && !isLate()) {
                refusal = error;
                return 'refused';
              }
              giveUp(error);
            }
            return 'over';
          },
        };
        (holdsOthers ? freshHolders : fresh).push(attempt);
        start();
      }),
  };
}

/** How long one attempt waits if it shares `sharedWaitMs` with other attempts. */
const briefShare = (others: number): number =>
  Math.max(shortestWaitMs, Math.min(Math.round(sharedWaitMs / (others + 1)), briefWait.lockTimeoutMs));
