import { randomUUID } from 'node:crypto';
import type { Database } from '../../../db/engine/connect.ts';
import { repeatLostRaces } from '../../../db/engine/failures.ts';
import { type EnteredClaim, forgetWaiting, type LeavingClaim } from '../../../db/statements/claims/waiting.ts';
import type { FleetKeeper } from '../../fleet/keep/keeper.ts';
import { openFairSeats } from '../../queue/fair_seats.ts';
import { type Claim, type ClaimOutcome, ClaimRefused } from '../claim.ts';
import type { Claims } from '../claims.ts';
import type { LimitReads } from '../limits.ts';
import { openDoubtfulClaims } from './doubtful.ts';
import { openWaitingLines } from './lines.ts';
import { openOffers } from './offers.ts';
import { openWaitingRows, storedAfterMs } from './rows.ts';
import {
  clientLeft,
  lineOf,
  newWaiter,
  noteCondition,
  processEnds,
  takenOver,
  timeRanOut,
  tooMany,
  type Wait,
  type Waiter,
} from './waiter.ts';

/** Claims that wait until they can be written. */
export type WaitingClaims = {
  /** How many claims wait. */
  readonly size: number;
  /** How long the claim that has waited longest has waited, in seconds; 0 where no claim waits. */
  longestSeconds(): number;
  /**
   * Writes a claim by query. A claim that fits nowhere, or exceeds a limit, waits.
   *
   * @throws ClaimRefused as `Claims.write`, where the wait has timed out or waiting would not help; ApiError 409 where a later request for
   *   the same consumers replaces the claim or its wait is ended, 429 where too many claims wait, 503 where the process ends
   */
  write(claim: Claim, wait: Wait): Promise<ClaimOutcome>;
  /** Notes a write that may have made room and that the known fleet may not show yet. */
  noteWrite(): void;
  /** Ends the waits of all claims, also of those that come later: the process ends. */
  end(): void;
  /** Resolves when the last statement has ended. */
  close(): Promise<void>;
};

type WaitingOptions = {
  /** How many claims may wait at once. */
  readonly maxWaiting: number;
  readonly limits: Pick<LimitReads, 'ofNew'>;
  /** Called with how long a claim that is placed has waited. */
  readonly onPlaced?: ((seconds: number) => void) | undefined;
};

/** The time between two rounds of checks, while claims wait. */
const checkEveryMs = 50;
/** The time between two checks of the limits. */
const checkLimitsEveryMs = 100;
/** The time between two notes in the database that this process is alive, and checks that its rows are still there. */
const noteAliveEveryMs = 1_000;
/** How many claims without a line are judged again then. */
const doubtedAtOnce = 10;
/** How long rows are kept after no claim waits any more. */
const forgetAfterMs = 66_000;
/** How long to wait after a round that failed. */
const afterFailureMs = 500;

/**
 * A claim is first written like any other claim. Only a claim that is refused for lack of room or for a limit waits: the process then
 * follows the changes of the fleet, and retries the claim when the known fleet has room. Claims are offered room in the order of their
 * arrival (offers.ts). Claims of a line are written one after the other: the database guards this order over all processes
 * (db/statements/claims/waiting.ts).
 *
 * No wake-up is lost: all trees are checked when a claim begins to wait, and from then on each tree that changes. When a claim is refused
 * although it seemed to fit, it waits again, and all trees are checked again.
 */
export function openWaiting(
  database: Database,
  fleet: Pick<FleetKeeper, 'fresh' | 'known' | 'snapshot' | 'ageSeconds' | 'watchRoom'>,
  claims: Claims,
  { maxWaiting, limits, onPlaced }: WaitingOptions,
): WaitingClaims {
  const process = randomUUID();
  let count = 0;
  let hasEnded = false;
  /** By the hashes of their projects and consumers. */
  const waiters = new Map<string, Waiter>();
  /** The claims that are about to be judged and written. */
  const underWay = new Set<Waiter>();
  const offers = openOffers(fleet, limits, claims, underWay, (waiter) => submit(waiter));
  const seats = openFairSeats<Waiter>({ most: maxWaiting, onEvicted: (waiter) => end(waiter, tooMany(waiter)) });
  const doubtful = openDoubtfulClaims(claims.dryRun, (waiter, error, how) => end(waiter, error, how));
  const stored = openWaitingRows(database, process, {
    isTaken: (key) => {
      const waiter = waiters.get(key);
      return waiter?.hasSeat === true && (waiter.mayHaveRow || waiter.wait.line !== undefined);
    },
    onEntered: (waiter, claim) => entered(waiter, claim),
    onOlder: (waiter) => end(waiter, takenOver()),
    onFailed: (waiter, error) => end(waiter, error, 'left'),
    onLeft: () => lines.readNews(),
  });
  const lines = openWaitingLines(
    database,
    process,
    { waiters, seats, rows: stored },
    {
      onTurn: (waiter) => submit(waiter),
      onMayFit: (waiter) => letWait(waiter),
      onDoubtful: (waiter) => doubtful.add(waiter),
      onReentering: (waiter) => drop(waiter),
      onEnded: (waiter, error) => end(waiter, error),
    },
  );

  // Beginning and end of a wait

  const write: WaitingClaims['write'] = (claim, wait) =>
    new Promise((resolve, reject) => {
      const waiter: Waiter = newWaiter(claim, wait, {
        index: count++,
        precedence: {
          isCancelled: () => wait.gone.aborted || waiter.ending !== undefined || mustJoin(waiter),
          isBehind: (judged, waitsForAll) => offers.isBehind(waiter, judged, waitsForAll),
          noteHeldUp: (isHeldUp) => {
            waiter.isHeldUp = isHeldUp;
          },
          get waitingRow() {
            const { line = null, owner } = wait;
            const isStored = line !== null || waiter.isStored;
            return { claim: waiter.key, process, projectId: owner.projectId, line, isStored };
          },
        },
        leave: () => end(waiter, clientLeft(), 'left'),
        resolve,
        reject,
      });
      const former = waiters.get(waiter.key);
      waiters.set(waiter.key, waiter);
      if (former !== undefined) {
        const isSame = lineOf(former) === lineOf(waiter);
        if (isSame) waiter.sinceMs = former.sinceMs;
        waiter.mayHaveRow = isSame && former.mayHaveRow;
        end(former, takenOver());
        if (waiter.mayHaveRow && !takeSeat(waiter)) return;
      }
      if (wait.line !== undefined) {
        if (takeSeat(waiter)) stored.enter(waiter);
      } else {
        if (waiter.mayHaveRow) stored.enter(waiter);
        if (!joinAlike(waiter)) submit(waiter);
      }
      offers.offerByLimits();
    });

  /**
   * Whether earlier claims like this one wait. Then this claim waits behind them without being judged: of a thousand such claims that
   * arrive at once, one is judged. A claim that has waited for something else until now is not written before them either.
   */
  const mustJoin = (waiter: Waiter): boolean =>
    waiter.wait.line === undefined && !waiter.isTimeOver && offers.hasAlikeBefore(waiter);

  /** Lets a claim wait behind the claims like it, which must be written first. */
  const joinAlike = (waiter: Waiter): boolean => {
    const waitsFor = offers.alikeWaitFor(waiter);
    if (waitsFor === undefined) return false;
    waiter.waitsFor = waitsFor;
    if (!takeSeat(waiter)) return true;
    letWait(waiter);
    doubtful.add(waiter);
    return true;
  };

  /** Gives a claim one of the seats, if one is free. */
  const takeSeat = (waiter: Waiter): boolean => {
    if (waiter.hasSeat) return true;
    const { client, gone } = waiter.wait;
    if (hasEnded) end(waiter, processEnds(), 'left');
    else if (gone.aborted) waiter.leave();
    else {
      const isFull = seats.size >= maxWaiting;
      waiter.hasSeat = !(isFull && seats.sizeOf(client) >= maxWaiting / 10) && seats.take(client, waiter);
      if (!waiter.hasSeat) end(waiter, tooMany(waiter));
    }
    if (!waiter.hasSeat) return false;
    gone.addEventListener('abort', waiter.leave, { once: true });
    waiter.timer = setTimeout(() => timeIsOver(waiter), Math.max(0, waiter.endsAtMs - performance.now()));
    clearTimeout(forgetting);
    forgetting = undefined;
    fleet.watchRoom(offers.noteFreed);
    planRound();
    return true;
  };

  /** Answers a claim with an error; a claim that is under way gets this error only if it is refused. */
  const end = (waiter: Waiter, error: unknown, how: LeavingClaim['how'] = 'ended'): void => {
    if (waiter.state === 'settled') return;
    if (underWay.has(waiter)) {
      waiter.ending ??= { error, how };
      return;
    }
    settle(waiter, how);
    waiter.reject(error);
  };

  const settle = (waiter: Waiter, how: LeavingClaim['how']): void => {
    drop(waiter);
    waiter.state = 'settled';
    clearTimeout(waiter.timer);
    waiter.wait.gone.removeEventListener('abort', waiter.leave);
    if (waiters.get(waiter.key) === waiter) waiters.delete(waiter.key);
    if (waiter.hasSeat) {
      seats.leave(waiter.wait.client, waiter);
      stored.leave(waiter, how);
      lines.leave(waiter);
    }
    if (seats.size === 0) fleet.watchRoom(undefined);
  };

  const drop = (waiter: Waiter): void => {
    offers.remove(waiter);
    doubtful.remove(waiter);
    lines.dropTurnCheck(waiter);
  };

  const timeIsOver = (waiter: Waiter): void => {
    waiter.isTimeOver = true;
    if (waiter.state === 'under way') return;
    if (waiter.state === 'waiting') submit(waiter);
    else {
      claims.dryRun(waiter.claim).then(
        () => end(waiter, timeRanOut(waiter)),
        (error: unknown) => end(waiter, error),
      );
    }
  };

  // Writing

  const submit = (waiter: Waiter): void => {
    drop(waiter);
    waiter.state = 'under way';
    underWay.add(waiter);
    void carryOut(waiter);
  };

  const carryOut = async (waiter: Waiter): Promise<void> => {
    const { promised } = waiter;
    try {
      // Without a wait the claim goes to the queue in the order of its arrival.
      if (waiter.hasSeat) {
        await stored.entered(waiter);
        waiter.claim = await waiter.wait.authorizeAgain();
      }
      const outcome = await claims.write({ ...waiter.claim, precedence: waiter.precedence });
      underWay.delete(waiter);
      // The statement has deleted its row.
      if (waiter.isStored) waiter.mayHaveRow = false;
      waiter.isStored = false;
      settle(waiter, 'ended');
      if (waiter.hasSeat) onPlaced?.((performance.now() - waiter.sinceMs) / 1000);
      waiter.resolve(outcome);
      if (waiter.waitsFor === 'limit') offers.offerByLimits();
    } catch (error) {
      underWay.delete(waiter);
      refused(waiter, error);
    }
    offers.noteEnded(promised);
  };

  const refused = (waiter: Waiter, error: unknown): void => {
    const { ending, isTimeOver: isOver } = waiter;
    const reason = error instanceof ClaimRefused ? error.reason : undefined;
    if (ending !== undefined) end(waiter, ending.error, ending.how);
    else if (reason === 'given up' && waiter.wait.gone.aborted) end(waiter, clientLeft(), 'left');
    else if (reason === 'given up') {
      if (!joinAlike(waiter)) submit(waiter);
    } else if (reason === 'not its turn' && !isOver) {
      waiter.state = 'in line';
      lines.checkTurn(waiter);
    } else if (reason === 'not its turn') end(waiter, timeRanOut(waiter));
    else if ((reason === 'no candidates' || reason === 'limit') && !isOver) {
      waiter.waitsFor = reason === 'limit' ? 'limit' : 'room';
      noteCondition(waiter, error);
      if (takeSeat(waiter)) letWait(waiter);
    } else end(waiter, error, reason === undefined ? 'left' : 'ended');
  };

  const letWait = (waiter: Waiter): void => {
    waiter.state = 'waiting';
    offers.add(waiter);
  };

  // Lines

  const entered = (waiter: Waiter, { number, waitedMs, isFirst }: EnteredClaim): void => {
    const nowMs = performance.now();
    const hasNumberBack = waitedMs > nowMs - waiter.sinceMs + storedAfterMs;
    if (hasNumberBack) {
      const isListed = waiter.state === 'waiting';
      if (isListed) drop(waiter);
      waiter.sinceMs = nowMs - waitedMs;
      if (isListed) offers.addAgain(waiter);
    }
    waiter.number = number;
    // Another process may have written the consumer after this claim was judged, and before it had the row that is guarded.
    if (waiter.wait.line === undefined && waiter.state === 'waiting') doubtful.add(waiter);
    if (waiter.wait.line === undefined || waiter.state !== 'entering') return;
    waiter.state = 'in line';
    lines.enter(waiter, { number, isFirst });
  };

  // Rounds of checks

  let reviewed = waiters.values();
  /** Judges some claims without a line again, in turn: another project, or a claim that does not wait, may have written their consumers. */
  const doubtSome = (): void => {
    for (let count = 0; count < doubtedAtOnce; ) {
      const { value: waiter } = reviewed.next();
      if (waiter === undefined) {
        reviewed = waiters.values();
        return;
      }
      if (waiter.wait.line !== undefined || waiter.state !== 'waiting') continue;
      doubtful.add(waiter);
      count += 1;
    }
  };

  let timer: NodeJS.Timeout | undefined;
  let isInRound = false;
  let offerByLimitsAtMs = 0;
  let aliveNotedAtMs = Number.NEGATIVE_INFINITY;
  const runRound = async (): Promise<void> => {
    timer = undefined;
    isInRound = true;
    let nextMs = checkEveryMs;
    try {
      const nowMs = performance.now();
      doubtful.judgeSome();
      if (fleet.ageSeconds() * 1000 >= checkEveryMs / 2) await fleet.fresh();
      offers.offerRoom();
      if (nowMs >= offerByLimitsAtMs) {
        offerByLimitsAtMs = nowMs + checkLimitsEveryMs;
        offers.offerByLimits();
      }
      lines.readNewsIfDue();
      stored.keepUp([...waiters.values()].filter(({ hasSeat }) => hasSeat));
      if (nowMs - aliveNotedAtMs >= noteAliveEveryMs) {
        aliveNotedAtMs = nowMs;
        // If another request has written a consumer of such a claim, the claim can never be written, and its line must go on.
        for (const first of lines.firsts()) if (first.state === 'waiting') doubtful.add(first);
        doubtSome();
        await lines.keepRows();
        await repeatLostRaces(() => forgetWaiting(database));
      }
    } catch {
      nextMs = afterFailureMs;
    }
    isInRound = false;
    planRound(nextMs);
  };
  const planRound = (ms = checkEveryMs): void => {
    if (timer !== undefined || isInRound) return;
    if (seats.size === 0 && !stored.hasWork()) {
      forgetting ??= setTimeout(forgetLast, forgetAfterMs).unref();
      return;
    }
    timer = setTimeout(() => void runRound(), ms).unref();
  };
  /** The last rows are deleted when their numbers need not be kept any more. */
  let forgetting: NodeJS.Timeout | undefined;
  const forgetLast = (): void => {
    forgetting = undefined;
    // If the database is unavailable, these rows are deleted after the next claims that wait.
    if (seats.size === 0) forgetWaiting(database).catch(() => {});
  };

  let isNoticing = false;
  return {
    get size() {
      return seats.size;
    },
    longestSeconds: () => {
      const nowMs = performance.now();
      const waitedMs = [...waiters.values()].map(({ hasSeat, sinceMs }) => (hasSeat ? nowMs - sinceMs : 0));
      return waitedMs.reduce((longest, each) => Math.max(longest, each), 0) / 1000;
    },
    write,
    noteWrite: () => {
      if (isNoticing || seats.size === 0) return;
      isNoticing = true;
      setImmediate(() => {
        isNoticing = false;
        // If the database is unavailable, the next round gets the error.
        fleet.fresh().then(
          () => offers.offerByLimits(),
          () => {},
        );
      });
    },
    end: () => {
      hasEnded = true;
      for (const waiter of [...waiters.values()]) if (waiter.hasSeat) end(waiter, processEnds(), 'left');
    },
    close: async () => {
      clearTimeout(timer);
      clearTimeout(forgetting);
      await stored.settled();
    },
  };
}
