import { randomUUID } from 'node:crypto';
import type { Database } from '../../db/engine/connect.ts';
import { repeatLostRaces } from '../../db/engine/failures.ts';
import {
  type EnteredClaim,
  forgetWaiting,
  type LeavingClaim,
  lookAtWaiting,
  lostRows,
  noteHeard,
  type WaitingNews,
} from '../../db/statements/waiting.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import { openFairSeats } from '../queue/fair_seats.ts';
import { ApiError } from '../request/errors.ts';
import { type Claim, type ClaimOutcome, ClaimRefused, type Precedence } from './claim.ts';
import type { Claims } from './claims.ts';
import type { LimitReads } from './limits.ts';
import {
  clientLeft,
  keyOf,
  kindOf,
  lineOf,
  processEnds,
  takenOver,
  timeRanOut,
  tooMany,
  type Wait,
  type Waiter,
  waitEnded,
} from './waiter.ts';
import { isBefore, openWaitingGroups } from './waiting_groups.ts';
import { openLimitedClaims } from './waiting_limits.ts';
import { openWaitingRows, storedAfterMs } from './waiting_rows.ts';
import { canBeAsked, type TakenAmount } from './would_take.ts';

/** Claims that wait until they can be written. */
export type WaitingClaims = {
  /** How many claims wait. */
  readonly size: number;
  /** How long the claim that has waited longest has waited, in seconds; 0 where no claim waits. */
  longestSeconds(): number;
  /**
   * Writes a claim by query. A claim that fits nowhere, or exceeds a limit, waits.
   *
   * @throws ClaimRefused as `Claims.write`, where the time is over or it would not help to wait; ApiError 409 where a later request for
   *   the same consumers replaces it or its wait is ended, 429 where too many claims wait, 503 where the process ends
   */
  write(claim: Claim, wait: Wait): Promise<ClaimOutcome>;
  /** Notes that something was written that the known fleet may not show yet, and that may have made room. */
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

/** The time between two looks at what has changed, while claims wait. */
const lookEveryMs = 50;
/** The time between two looks at limits and lines, and at a line whose first claim is of another process. */
const [lookAtOthersEveryMs, lookElsewhereEveryMs] = [100, 40];
/** If no claim of another process was before a claim of this process for this long, the process assumes that its lines have no others. */
const aloneAfterMs = 1_000;
/** The time between two notes in the database that this process is alive, and checks that its rows are still there. */
const heardEveryMs = 1_000;
/** For how long the process looks for claims that fit before other requests have their turn. */
const lookForMs = 10;
/** How long a claim that was refused although it seemed to fit is not tried: longer each time. */
const [shortestPauseMs, longestPauseMs] = [20, 80];
/** The time between two tries of a claim if the limits alone do not tell whether the claim exceeds one of them. */
const tryEveryMs = 1_000;
/** How many of the claims that are to be tried out are judged with each look. */
const triedAtOnce = 10;
/** How many claims are written at the same time because a limit allows them. */
const submittedAtOnce = 256;
/** How long rows are kept after no claim waits any more. */
const forgetAfterMs = 66_000;
/** How long to wait after a look that failed. */
const afterFailureMs = 500;

/**
 * A claim is first written like any other claim. Only a claim that is refused for lack of room or for a limit waits: the process then
 * follows the changes of the fleet, and writes the claim again when the known fleet has room for it. Claims are offered room in the order
 * in which they came (waiting_groups.ts). Claims of a line are written one after the other, which the database guards over all processes
 * (db/statements/waiting.ts).
 *
 * No wake-up is lost: all trees are checked when a claim begins to wait, and from then on each tree that changes. A claim that seemed to
 * fit and is refused comes back, and all trees are checked again.
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
  /** By the hashes of their consumers. */
  const waiters = new Map<string, Waiter>();
  /** The claims that are about to be judged and written. */
  const underWay = new Set<Waiter>();
  /** The claims that were refused although they seemed to fit, until all trees were checked again. */
  const tried = new Set<Waiter>();
  const forRoom = openWaitingGroups<Waiter>();
  /** The claims that wait for a limit. */
  const forLimit = openLimitedClaims();
  /** The claims of each line that have their numbers, in the order of these. */
  const lines = new Map<string, Waiter[]>();
  const seats = openFairSeats<Waiter>({ most: maxWaiting, takeAway: (waiter) => end(waiter, tooMany(waiter)) });
  const stored = openWaitingRows(database, process, {
    isTaken: (key) => {
      const waiter = waiters.get(key);
      return waiter?.hasSeat === true && (waiter.mayHaveRow || waiter.wait.line !== undefined);
    },
    onEntered: (waiter, claim) => entered(waiter, claim),
    onOlder: (waiter) => end(waiter, takenOver()),
    onFailed: (waiter, error) => end(waiter, error, 'left'),
    onLeft: () => lines.size > 0 && void lookAtLines(),
  });

  // Beginning and end of a wait

  const write: WaitingClaims['write'] = (claim, wait) =>
    new Promise((resolve, reject) => {
      const nowMs = performance.now();
      const index = count++;
      const waiter: Waiter = {
        claim,
        wait,
        key: keyOf(claim, wait),
        kind: kindOf(claim, wait, index),
        isAsked: canBeAsked(claim),
        index,
        precedence: {
          isGivenUp: () => wait.gone.aborted || waiter.ending !== undefined || mustJoin(waiter),
          isBehind: (judged, isPatient) => isBehind(waiter, judged, isPatient),
          noteHeldUp: (isHeldUp) => {
            waiter.isHeldUp = isHeldUp;
          },
          get waitingRow() {
            const { line = null, owner } = wait;
            const isStored = line !== null || waiter.isStored;
            return { claim: waiter.key, process, projectId: owner.projectId, line, isStored };
          },
        },
        sinceMs: nowMs,
        cameAtMs: nowMs,
        askedAtMs: null,
        lookedAtMs: 0,
        endsAtMs: nowMs + wait.waitMs,
        number: 0,
        state: 'entering',
        waitsFor: 'room',
        condition: '',
        isHeldUp: false,
        hasSeat: false,
        mayHaveRow: false,
        isStored: false,
        isDescribed: true,
        promised: undefined,
        notBeforeMs: 0,
        ending: undefined,
        isTimeOver: false,
        refusals: 0,
        mustBeTried: false,
        timer: undefined,
        leave: () => end(waiter, clientLeft(), 'left'),
        resolve,
        reject,
      };
      const former = waiters.get(waiter.key);
      waiters.set(waiter.key, waiter);
      if (former !== undefined) {
        const isSame = lineOf(former) === lineOf(waiter);
        if (isSame) waiter.sinceMs = former.sinceMs;
        waiter.mayHaveRow = isSame && former.mayHaveRow;
        end(former, takenOver());
        if (waiter.mayHaveRow && !sit(waiter)) return;
      }
      if (wait.line !== undefined) {
        if (sit(waiter)) stored.enter(waiter);
      } else {
        if (waiter.mayHaveRow) stored.enter(waiter);
        if (!joinAlike(waiter)) submit(waiter);
      }
      if (forLimit.size > 0) void offerByLimits();
    });

  /** What claims like this one wait for. A claim is like another one if both fit, or both do not fit, and exceed the same limits. */
  const alikeWaitFor = ({ kind, claim }: Waiter): Waiter['waitsFor'] | undefined => {
    if (forLimit.hasKind(kind)) return 'limit';
    return forRoom.hasAlike(claim) ? 'room' : undefined;
  };

  /**
   * Whether claims like this one wait that came before it. Then this claim joins them unjudged: of a thousand such claims that come at
   * once, one is judged. And if this claim waited for something else before, it is not written before them.
   */
  const mustJoin = (waiter: Waiter): boolean =>
    waiter.wait.line === undefined &&
    !waiter.isTimeOver &&
    (forLimit.hasKindBefore(waiter) || forRoom.hasAlikeBefore(waiter));

  /** Lets a claim wait behind the claims like it: the claim must not be written before them. */
  const joinAlike = (waiter: Waiter): boolean => {
    const waitsFor = alikeWaitFor(waiter);
    if (waitsFor === undefined) return false;
    waiter.waitsFor = waitsFor;
    if (!sit(waiter)) return true;
    letWait(waiter);
    toTryOut.add(waiter);
    return true;
  };

  const isBehind = (waiter: Waiter, judged: ReadonlySet<Precedence>, isPatient: boolean): boolean => {
    for (const other of underWay) {
      if (other === waiter || judged.has(other.precedence) || !isBefore(other, waiter)) continue;
      const isWaitedFor = isPatient || (other.kind === waiter.kind && !other.isHeldUp);
      // If the queue keeps the other claim behind a third one, the third one may be behind this claim, whether it waits or not.
      if (isWaitedFor && !claims.isQueuedBehind(other.precedence)) return true;
    }
    if (!isPatient) return false;
    for (const other of tried) {
      if (!forRoom.isUnlooked(other)) tried.delete(other);
      else if (isBefore(other, waiter)) return true;
    }
    return forLimit.hasUnlookedBefore(waiter);
  };

  /** Gives a claim one of the seats, if one is free. */
  const sit = (waiter: Waiter): boolean => {
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
    fleet.watchRoom(onFreed);
    lookLater();
    return true;
  };

  /** Answers a claim by an error; a claim that is under way gets the error only if it is refused. */
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
      leaveLine(waiter);
    }
    if (seats.size === 0) fleet.watchRoom(undefined);
  };

  const drop = (waiter: Waiter): void => {
    forRoom.remove(waiter);
    tried.delete(waiter);
    toTryOut.delete(waiter);
    inDoubt.delete(waiter);
    forLimit.remove(waiter);
  };

  const timeIsOver = (waiter: Waiter): void => {
    waiter.isTimeOver = true;
    if (waiter.state === 'under way') return;
    if (waiter.state === 'waiting') submit(waiter);
    else {
      claims.tryOut(waiter.claim).then(
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
        waiter.claim = await waiter.wait.askAgain();
      }
      const outcome = await claims.write({ ...waiter.claim, precedence: waiter.precedence });
      underWay.delete(waiter);
      // The statement has deleted its row.
      if (waiter.isStored) waiter.mayHaveRow = false;
      waiter.isStored = false;
      settle(waiter, 'ended');
      if (waiter.hasSeat) onPlaced?.((performance.now() - waiter.sinceMs) / 1000);
      waiter.resolve(outcome);
      if (waiter.waitsFor === 'limit') void offerByLimits();
    } catch (error) {
      underWay.delete(waiter);
      refused(waiter, error);
    }
    if (promised === undefined || promised.length === 0) return;
    // It may have taken something else.
    forRoom.noteFreed(promised.map(({ providerId }) => providerId));
    offer();
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
      if (waiter.wait.line === undefined) inDoubt.add(waiter);
      void lookAtLines();
    } else if (reason === 'not its turn') end(waiter, timeRanOut(waiter));
    else if ((reason === 'no candidates' || reason === 'limit') && !isOver) {
      waiter.waitsFor = reason === 'limit' ? 'limit' : 'room';
      tell(waiter, error);
      if (sit(waiter)) letWait(waiter);
    } else end(waiter, error, reason === undefined ? 'left' : 'ended');
  };

  const letWait = (waiter: Waiter): void => {
    waiter.state = 'waiting';
    const wasTried = waiter.promised !== undefined;
    waiter.promised = undefined;
    const pauseMs = wasTried ? Math.min(longestPauseMs, shortestPauseMs * 2 ** waiter.refusals) : 0;
    waiter.refusals = wasTried ? waiter.refusals + 1 : 0;
    const { isAsked } = waiter;
    if (waiter.waitsFor === 'room') {
      forRoom.add(waiter, pauseMs);
      if (wasTried || !isAsked) tried.add(waiter);
    } else {
      forLimit.add(waiter);
      const longMs = Math.max(tryEveryMs, 10 * forLimit.size);
      waiter.notBeforeMs = performance.now() + (isAsked && !waiter.mustBeTried ? pauseMs : longMs);
      waiter.mustBeTried = false;
    }
    offer();
  };

  const tell = (waiter: Waiter, error: unknown): void => {
    const condition = error instanceof Error ? error.message : '';
    waiter.isDescribed &&= waiter.condition === condition;
    waiter.condition = condition;
  };

  // Room and limits

  const onFreed = (freed: readonly number[] | 'all'): void => {
    forRoom.noteFreed(freed);
    offer();
    if (forLimit.size > 0 && freed.length > 0) void offerByLimits();
  };

  let isOffering = false;
  const offer = (): void => {
    if (isOffering || forRoom.size === 0) return;
    const { taken, isDone } = takeFitting();
    for (const { item, amounts } of taken) {
      item.promised = amounts;
      submit(item);
    }
    if (!isDone) setImmediate(offer);
  };

  const takeFitting = () => {
    isOffering = true;
    try {
      return forRoom.take(fleet.known, promisedAmounts(underWay), lookForMs);
    } finally {
      isOffering = false;
    }
  };

  /** Writes the claims that do not exceed their limits any more, the first ones of each kind. */
  const offerByLimits = onceMoreIfAsked({
    failed: () => {}, // the database is away; the next look comes soon
    round: async () => {
      if (forLimit.size === 0) return;
      const nowMs = performance.now();
      const kinds = forLimit.kinds().filter(([{ notBeforeMs }]) => notBeforeMs <= nowMs);
      const asked = kinds.filter(([{ isAsked }]) => isAsked);
      const times =
        asked.length === 0
          ? []
          : await limits.ofNew(
              fleet,
              asked.map(([{ claim }]) => claim),
            );
      for (const [index, [{ wait }]] of asked.entries()) {
        if (times?.[index] === 0) forLimit.noteLooked(wait.owner.projectId, nowMs);
      }
      const fitting = kinds.flatMap((kind) => {
        const index = asked.indexOf(kind);
        const [first] = kind;
        const count = index === -1 ? 1 : (times?.[index] ?? 1);
        // The limit that refused a claim of several queries may be that of one of them: then only the judgement of the claim tells.
        if (count < Number.POSITIVE_INFINITY || !hasSeveralQueries(first.claim)) return kind.slice(0, count);
        first.mustBeTried = true;
        return kind.slice(0, 1);
      });
      for (const waiter of fitting.sort((a, b) => (isBefore(a, b) ? -1 : 1)).slice(0, submittedAtOnce)) {
        if (waiter.state !== 'waiting') continue;
        waiter.promised = [];
        submit(waiter);
      }
    },
  });

  // Lines

  const entered = (waiter: Waiter, { number, waitedMs, isFirst }: EnteredClaim): void => {
    const nowMs = performance.now();
    const hasNumberBack = waitedMs > nowMs - waiter.sinceMs + storedAfterMs;
    if (hasNumberBack) {
      const isListed = waiter.state === 'waiting';
      if (isListed) drop(waiter);
      waiter.sinceMs = nowMs - waitedMs;
      if (isListed && waiter.waitsFor === 'room') forRoom.add(waiter, 0);
      else if (isListed) forLimit.add(waiter);
    }
    waiter.number = number;
    // Another process may have written the consumer after this claim was judged, and before it had the row that is guarded.
    if (waiter.wait.line === undefined && waiter.state === 'waiting') toTryOut.add(waiter);
    if (waiter.wait.line === undefined || waiter.state !== 'entering') return;
    waiter.state = 'in line';
    const line = lines.get(lineOf(waiter)) ?? [];
    lines.set(lineOf(waiter), line);
    const later = line.findIndex((other) => other.number > number);
    line.splice(later === -1 ? line.length : later, 0, waiter);
    if (isFirst && line[0] === waiter) submit(waiter);
    else toTryOut.add(waiter);
  };

  /** Claims that wait and are to be judged: they were not so far, or another request may have written their consumers since. */
  const toTryOut = new Set<Waiter>();
  /** Judges some of these claims with each look, by one statement: refuses claims that are wrong, and finds what the others wait for. */
  const tryOutSome = (): void => {
    for (const waiter of [...toTryOut.values().take(triedAtOnce)]) {
      toTryOut.delete(waiter);
      if (waiter.state === 'in line' || waiter.state === 'waiting') void tryOutAside(waiter);
    }
  };

  const tryOutAside = async (waiter: Waiter): Promise<void> => {
    try {
      await claims.tryOut(waiter.claim);
    } catch (error) {
      if (waiter.state !== 'in line' && waiter.state !== 'waiting') return;
      if (!(error instanceof ClaimRefused) && !(error instanceof ApiError)) {
        toTryOut.add(waiter); // the database is away
        return;
      }
      const reason = error instanceof ClaimRefused ? error.reason : undefined;
      if (reason === 'no candidates' || reason === 'limit') {
        // Where it waits beside others it waits for the same as these.
        if (waiter.state === 'in line') waiter.waitsFor = reason === 'limit' ? 'limit' : 'room';
        tell(waiter, error);
      } else end(waiter, error, reason === undefined ? 'left' : 'ended');
    }
  };

  const leaveLine = (waiter: Waiter): void => {
    const line = lines.get(lineOf(waiter));
    const index = line?.indexOf(waiter) ?? -1;
    if (line === undefined || index === -1) return;
    line.splice(index, 1);
    const [next] = line;
    if (next === undefined) lines.delete(lineOf(waiter));
    else if (index > 0) return;
    // If no other process had a first claim of late, the next claim of the line is of this process; the write of the claim proves that.
    else if (next.state === 'in line' && next.isAsked && performance.now() - elsewhereAtMs > aloneAfterMs)
      letWait(next);
    else void lookAtLines();
  };

  /** Claims without a line that were refused because their rows are not there, or because their wait was ended. */
  const inDoubt = new Set<Waiter>();
  let lookAtLinesAtMs = 0;
  /** When a claim of another process was found before one of this process. */
  let elsewhereAtMs = Number.NEGATIVE_INFINITY;
  /** Asks the database which claims are the first ones of their lines, and which another process has ended. */
  const lookAtLines = onceMoreIfAsked({
    failed: () => {
      lookAtLinesAtMs = performance.now() + afterFailureMs;
    },
    round: async () => {
      if (seats.size === 0) return;
      const firsts = [...lines.values()].flatMap(([first]) => (first?.state === 'in line' ? [first.key] : []));
      const doubted = Array.from(inDoubt, ({ key }) => key);
      const news = await repeatLostRaces(() => lookAtWaiting(database, process, [...firsts, ...doubted]));
      const isElsewhere = news.some(({ what }) => what === 'elsewhere');
      const nowMs = performance.now();
      if (isElsewhere) elsewhereAtMs = nowMs;
      lookAtLinesAtMs = nowMs + (isElsewhere ? lookElsewhereEveryMs : lookAtOthersEveryMs);
      for (const each of news) take(each);
    },
  });

  const take = ({ claim, what, askedAtMs }: WaitingNews): void => {
    const waiter = waiters.get(claim);
    if (waiter === undefined) return;
    if (what === 'taken over') {
      const isOlder = waiter.askedAtMs !== null && waiter.askedAtMs <= (askedAtMs ?? 0);
      if (isOlder) endWithoutRow(waiter, takenOver());
      else enterAgain(waiter);
    } else if (what === 'removed') {
      // It may have been the row of an earlier request, which this one replaces, or has replaced since the row was read.
      const isOwn = waiter.isStored && waiter.askedAtMs === askedAtMs;
      if (isOwn) endWithoutRow(waiter, waitEnded());
      else void endIfRemoved(waiter);
    } else if (waiter.state !== 'in line') return;
    else if (inDoubt.delete(waiter)) {
      waiter.isStored = what !== 'gone';
      letWait(waiter);
    } else if (what === 'first' && lines.get(lineOf(waiter))?.[0] === waiter) submit(waiter);
    else if (what === 'gone') enterAgain(waiter);
  };

  /** Ends a wait whose row tells of a later request or of its end: it is kept for a while, so that no older request replaces it. */
  const endWithoutRow = (waiter: Waiter, error: ApiError): void => {
    waiter.isStored = false;
    waiter.mayHaveRow = false;
    end(waiter, error);
  };
  const endIfRemoved = async (waiter: Waiter): Promise<void> => {
    await stored.entered(waiter);
    // The row was of an earlier request. What is read below would be older than the row that this one may get meanwhile.
    if (!waiter.isStored) return;
    // If the database is away, the row is looked for again within a second.
    const lost = await repeatLostRaces(() => lostRows(database, process, [waiter.key])).catch(() => []);
    if (lost.length > 0 && waiter.isStored) endWithoutRow(waiter, waitEnded());
  };

  /** Stores a claim that has no row of this process any more; the database tells which of several requests for the same came last. */
  const enterAgain = (waiter: Waiter): void => {
    if (waiter.state === 'under way') return; // its row is checked when it is written
    waiter.isStored = false;
    if (waiter.wait.line !== undefined) {
      drop(waiter);
      leaveLine(waiter);
      waiter.state = 'entering';
    }
    stored.enter(waiter);
    if (waiter.wait.line === undefined) toTryOut.add(waiter);
  };

  // Looks

  let timer: NodeJS.Timeout | undefined;
  let isLooking = false;
  let offerByLimitsAtMs = 0;
  let heardAtMs = Number.NEGATIVE_INFINITY;
  const look = async (): Promise<void> => {
    timer = undefined;
    isLooking = true;
    let nextMs = lookEveryMs;
    try {
      const nowMs = performance.now();
      tryOutSome();
      if (fleet.ageSeconds() * 1000 >= lookEveryMs / 2) await fleet.fresh();
      offer();
      if (nowMs >= offerByLimitsAtMs) {
        offerByLimitsAtMs = nowMs + lookAtOthersEveryMs;
        void offerByLimits();
      }
      if (nowMs >= lookAtLinesAtMs) void lookAtLines();
      stored.keepUp([...waiters.values()].filter(({ hasSeat }) => hasSeat));
      if (nowMs - heardAtMs >= heardEveryMs) {
        heardAtMs = nowMs;
        // If another request has written a consumer of such a claim, the claim can never be written, and its line must go on.
        for (const [first] of lines.values()) if (first?.state === 'waiting') toTryOut.add(first);
        await findLostRows();
        await repeatLostRaces(() => forgetWaiting(database));
      }
    } catch {
      nextMs = afterFailureMs;
    }
    isLooking = false;
    lookLater(nextMs);
  };
  const lookLater = (ms = lookEveryMs): void => {
    if (timer !== undefined || isLooking) return;
    if (seats.size === 0 && !stored.hasWork()) {
      forgetting ??= setTimeout(forgetLast, forgetAfterMs).unref();
      return;
    }
    timer = setTimeout(() => void look(), ms).unref();
  };
  /** The last rows are deleted when their numbers need not be kept any more. */
  let forgetting: NodeJS.Timeout | undefined;
  const forgetLast = (): void => {
    forgetting = undefined;
    // If the database is away, they are forgotten with those that wait next.
    if (seats.size === 0) forgetWaiting(database).catch(() => {});
  };

  /**
   * Finds claims whose rows are gone, and stores them again. Another process has deleted the rows, because it took this process for dead,
   * or has taken them over; or another program has deleted them.
   */
  const findLostRows = async (): Promise<void> => {
    const own = [...waiters.values()].filter(({ isStored }) => isStored).sort((a, b) => a.number - b.number);
    const rows = await repeatLostRaces(() => noteHeard(database, process));
    if (rows >= own.length) return;
    const keys = own.flatMap(({ key, state }) => (state === 'under way' ? [] : [key]));
    for (const key of await repeatLostRaces(() => lostRows(database, process, keys))) {
      const waiter = waiters.get(key);
      if (waiter?.isStored) enterAgain(waiter);
    }
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
        // If the database is away, the next look gets the error.
        fleet.fresh().then(
          () => void offerByLimits(),
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

/**
 * Does work round by round: a call while a round is under way asks for one more.
 *
 * @param work.failed called with what a round has thrown; then there is no further round until the next call
 */
function onceMoreIfAsked({
  round,
  failed,
}: {
  readonly round: () => Promise<void>;
  readonly failed: () => void;
}): () => Promise<void> {
  let isUnderWay = false;
  let isAsked = false;
  return async () => {
    isAsked = true;
    if (isUnderWay) return;
    isUnderWay = true;
    try {
      while (isAsked) {
        isAsked = false;
        await round();
      }
    } catch {
      failed();
    } finally {
      isUnderWay = false;
    }
  };
}

const hasSeveralQueries = ({ consumers }: Claim): boolean =>
  consumers.some(({ queries }) => queries !== undefined && queries.length > 1);

function* promisedAmounts(waiters: Iterable<Waiter>): Generator<readonly TakenAmount[]> {
  for (const { promised } of waiters) if (promised !== undefined) yield promised;
}
