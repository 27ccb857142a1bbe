import { createHash, randomUUID } from 'node:crypto';
import type { Database } from '../../db/engine/connect.ts';
import { repeatLostRaces } from '../../db/engine/failures.ts';
import {
  describeWaiting,
  enterWaiting,
  forgetWaiting,
  type LeavingClaim,
  leaveWaiting,
  lookAtWaiting,
  noteHeard,
  type WaitingClaim,
  type WaitingNews,
  type WaitingPlace,
} from '../../db/statements/waiting.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import type { Owner } from '../placement/owner.ts';
import { openFairSeats } from '../queue/items.ts';
import { ApiError, badRequest, conflict, errorCodes, tryLater } from '../request/errors.ts';
import { type Claim, type ClaimOrder, type ClaimOutcome, ClaimRefused } from './claim.ts';
import type { Claims } from './claims.ts';
import type { LimitReads } from './limits.ts';
import { insertInOrder, isBefore, openWaitingGroups } from './waiting_groups.ts';
import { canBeAsked, placesAlike, type TakenAmount } from './would_take.ts';

/** How a claim waits. */
export type Wait = {
  /** For how long, in milliseconds. */
  readonly waitMs: number;
  /** The line of the project in which it waits for its turn; undefined without one. */
  readonly line: string | undefined;
  /** The owner of its first consumer. */
  readonly owner: Owner;
  /** The client, as those are told apart that share the places. */
  readonly client: string;
  /** Aborted where the client leaves. */
  readonly gone: AbortSignal;
  /** Makes the claim again when it is its turn. @throws ApiError 401 or 403 where the client may not make it any more */
  askAgain(): Promise<Claim>;
};

/** Claims that wait until they can be written. */
export type WaitingClaims = {
  /** How many wait. */
  readonly size: number;
  /**
   * Writes a claim by query. Where it fits nowhere, or exceeds a limit, it waits.
   *
   * @throws ClaimRefused as `Claims.write`, where the time is over or it would not help to wait; ApiError 409 where a later request for
   *   the same consumers takes its place or its wait is ended, 429 where too many claims wait, 503 where the process ends
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
/** The time between two notes that the process was heard of. */
const heardEveryMs = 1_000;
/** A claim that has waited for this long is stored, so that every process lists it. */
const storedAfterMs = 200;
/** For how long the process looks for claims that fit before other requests have their turn. */
const lookForMs = 10;
/** How long a claim is left alone that was refused for a limit although it did not seem to exceed it. */
const pauseMs = 20;
/** The same where the fleet alone does not tell whether it exceeds one. */
const tryEveryMs = 100;
/** How long to wait after a look that failed. */
const afterFailureMs = 500;

/**
 * `entering`: it gets its number. `in line`: a claim of its line is before it. `waiting`: for room or for a limit. `under way`: it is judged and
 * written. `settled`: it is answered.
 */
type State = 'entering' | 'in line' | 'waiting' | 'under way' | 'settled';

type Waiter = {
  claim: Claim;
  readonly wait: Wait;
  /** The hash of its consumers. */
  readonly key: string;
  readonly index: number;
  readonly order: ClaimOrder;
  /** When the wait began, by `performance.now()`; maybe with an earlier request for the same. */
  sinceMs: number;
  readonly cameAtMs: number;
  readonly endsAtMs: number;
  /** Its number in its line. */
  number: number;
  state: State;
  waitsFor: 'room' | 'limit';
  condition: string;
  /** Whether it has one of the places. */
  hasSeat: boolean;
  /** Whether its row is stored, and has its condition. */
  isStored: boolean;
  isDescribed: boolean;
  /** What it would take by the last look; undefined before it was woken. */
  promised: readonly TakenAmount[] | undefined;
  notBeforeMs: number;
  /** When it was last found that it exceeds a limit. */
  lookedAtMs: number;
  /** What a claim that is under way is answered if it is refused; `true` for the refusal. */
  ending: unknown;
  timer: NodeJS.Timeout | undefined;
  readonly leave: () => void;
  readonly resolve: (outcome: ClaimOutcome) => void;
  readonly reject: (error: unknown) => void;
};

/**
 * A claim is written as others are. Only where that is refused for want of room or for a limit, it waits: the process then follows the
 * changes of the fleet, and writes it again when the known fleet has room for it. Claims are offered room in the order in which they came
 * (waiting_groups.ts); claims of a line one after the other, which the database guards over all processes (db/statements/waiting.ts).
 *
 * No wake-up is lost: all trees are looked at when a claim begins to wait, and from then on all that change. A claim that seemed to fit and
 * is refused comes back, and all trees are looked at again.
 */
export function openWaiting(
  database: Database,
  fleet: Pick<FleetKeeper, 'fresh' | 'known' | 'moment' | 'ageSeconds' | 'watchRoom'>,
  claims: Claims,
  { maxWaiting, limits, onPlaced }: WaitingOptions,
): WaitingClaims {
  const process = randomUUID();
  let count = 0;
  let hasEnded = false;
  /** By the hashes of their consumers. */
  const waiters = new Map<string, Waiter>();
  const underWay = new Set<Waiter>();
  /** Those that were refused although they seemed to fit, until all trees were looked at again. */
  const tried = new Set<Waiter>();
  const forRoom = openWaitingGroups<Waiter>();
  /** Those that wait for a limit, in the order of arrival. */
  const forLimit: Waiter[] = [];
  /** The claims of each line that have their numbers, in the order of these. */
  const lines = new Map<string, Waiter[]>();
  const seats = openFairSeats<Waiter>({ most: maxWaiting, takeAway: (waiter) => end(waiter, tooMany(waiter)) });
  const stored = openStored(database, process, {
    isPresent: (key) => waiters.has(key),
    onEntered: (waiter, place) => entered(waiter, place),
    onFailed: (waiter, error) => end(waiter, error, 'left'),
    onLeft: () => void lookAtLines(),
  });

  // Beginning and end of a wait

  const write: WaitingClaims['write'] = (claim, wait) =>
    new Promise((resolve, reject) => {
      const nowMs = performance.now();
      const waiter: Waiter = {
        claim,
        wait,
        key: keyOf(claim),
        index: count++,
        order: {
          isGivenUp: () => wait.gone.aborted || (waiter.ending !== undefined && waiter.ending !== true),
          isBehind: (judged) => isBehind(waiter, judged),
          get turn() {
            const { line = null, owner } = wait;
            const hasRow = line !== null || waiter.isStored;
            return hasRow ? { claim: waiter.key, process, projectId: owner.projectId, line } : undefined;
          },
        },
        sinceMs: nowMs,
        cameAtMs: nowMs,
        lookedAtMs: 0,
        endsAtMs: nowMs + wait.waitMs,
        number: 0,
        state: 'entering',
        waitsFor: 'room',
        condition: '',
        hasSeat: false,
        isStored: false,
        isDescribed: true,
        promised: undefined,
        notBeforeMs: 0,
        ending: undefined,
        timer: undefined,
        leave: () => end(waiter, clientLeft(), 'left'),
        resolve,
        reject,
      };
      const former = waiters.get(waiter.key);
      if (former !== undefined) {
        if (lineOf(former) === lineOf(waiter)) waiter.sinceMs = former.sinceMs;
        waiters.set(waiter.key, waiter);
        end(former, takenOver());
      }
      waiters.set(waiter.key, waiter);
      if (wait.line !== undefined) {
        if (sit(waiter)) stored.enter(waiter);
      } else if (!joinAlike(waiter)) submit(waiter);
      if (forLimit.length > 0) void offerByLimits();
    });

  /** Lets a claim wait behind those that fit or exceed a limit only together with it: it must not be written before them. */
  const joinAlike = (waiter: Waiter): boolean => {
    const kind = kindOf(waiter);
    if (forLimit.some((other) => kindOf(other) === kind)) waiter.waitsFor = 'limit';
    else if (!forRoom.hasAlike(waiter.claim)) return false;
    if (!sit(waiter)) return true;
    letWait(waiter);
    void tryOutAside(waiter);
    return true;
  };

  const isBehind = (waiter: Waiter, judged: ReadonlySet<ClaimOrder>): boolean => {
    for (const other of underWay) {
      if (other !== waiter && !judged.has(other.order) && isBefore(other, waiter)) return true;
    }
    for (const other of tried) {
      if (!forRoom.isUnlooked(other)) tried.delete(other);
      else if (isBefore(other, waiter)) return true;
    }
    const { projectId } = waiter.wait.owner;
    return forLimit.some(
      ({ wait, lookedAtMs, sinceMs }) =>
        wait.owner.projectId === projectId && sinceMs < waiter.sinceMs && lookedAtMs < waiter.cameAtMs,
    );
  };

  /** Gives a claim one of the places, if there is one. */
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
    waiter.timer = setTimeout(() => timeIsOver(waiter), waiter.endsAtMs - performance.now());
    fleet.watchRoom(onFreed);
    lookLater();
    return true;
  };

  /** Answers a claim by an error; one that is under way only if it is refused. */
  const end = (waiter: Waiter, error: unknown, how: LeavingClaim['how'] = 'ended'): void => {
    if (waiter.state === 'settled') return;
    if (underWay.has(waiter)) {
      waiter.ending ??= error;
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
    inDoubt.delete(waiter);
    const index = forLimit.indexOf(waiter);
    if (index !== -1) forLimit.splice(index, 1);
  };

  const timeIsOver = (waiter: Waiter): void => {
    if (waiter.state === 'under way') waiter.ending ??= true;
    else if (waiter.state === 'waiting') {
      waiter.ending = true;
      submit(waiter);
    } else {
      claims.tryOut(waiter.claim).then(
        () => end(waiter, notItsTurn(waiter)),
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
      const outcome = await claims.write({ ...waiter.claim, order: waiter.order });
      underWay.delete(waiter);
      // The statement has deleted the row of a claim that had a turn.
      if (waiter.wait.line !== undefined) waiter.isStored = false;
      settle(waiter, 'ended');
      if (waiter.hasSeat) onPlaced?.((performance.now() - waiter.sinceMs) / 1000);
      waiter.resolve(outcome);
      if (waiter.waitsFor === 'limit') void offerByLimits();
    } catch (error) {
      underWay.delete(waiter);
      refused(waiter, error);
    }
    if (promised === undefined || forRoom.size === 0) return;
    // It may have taken something else.
    forRoom.noteFreed(promised.map(({ providerId }) => providerId));
    offer();
  };

  const refused = (waiter: Waiter, error: unknown): void => {
    const { ending } = waiter;
    const reason = error instanceof ClaimRefused ? error.reason : undefined;
    const isOver = ending === true;
    if (ending !== undefined && !isOver) end(waiter, ending);
    else if (reason === 'given up') end(waiter, clientLeft(), 'left');
    else if (reason === 'not its turn' && !isOver) {
      waiter.state = 'in line';
      if (waiter.wait.line === undefined) inDoubt.add(waiter);
      void lookAtLines();
    } else if (reason === 'not its turn') end(waiter, notItsTurn(waiter));
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
    if (waiter.waitsFor === 'room') {
      forRoom.add(waiter, wasTried);
      if (wasTried) tried.add(waiter);
    } else {
      insertInOrder(forLimit, waiter);
      const pause = canBeAsked(waiter.claim) ? pauseMs : tryEveryMs;
      waiter.notBeforeMs = performance.now() + (wasTried ? pause : 0);
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
    if (forLimit.length > 0 && freed.length > 0) void offerByLimits();
  };

  let isOffering = false;
  const offer = (): void => {
    if (isOffering || forRoom.size === 0) return;
    isOffering = true;
    const { taken, isDone } = forRoom.take(fleet.known, promisedAmounts(underWay), lookForMs);
    isOffering = false;
    for (const { item, amounts } of taken) {
      item.promised = amounts;
      submit(item);
    }
    if (!isDone) setImmediate(offer);
  };

  let isOfferingByLimits = false;
  let mustOfferByLimits = false;
  /** Writes the first claim of each kind that does not exceed its limit any more. */
  const offerByLimits = async (): Promise<void> => {
    mustOfferByLimits = true;
    if (isOfferingByLimits) return;
    isOfferingByLimits = true;
    try {
      while (mustOfferByLimits && forLimit.length > 0) {
        mustOfferByLimits = false;
        const nowMs = performance.now();
        const firsts = [...firstsOfKinds(forLimit)].filter(({ notBeforeMs }) => notBeforeMs <= nowMs);
        const asked = firsts.filter(({ claim }) => canBeAsked(claim));
        const exceeded =
          asked.length === 0
            ? []
            : await limits.ofNew(
                fleet,
                asked.map(({ claim }) => claim),
              );
        const fitting = asked.filter((_, index) => exceeded?.[index] !== true);
        for (const [index, { wait }] of asked.entries()) {
          if (exceeded?.[index] !== true) continue;
          const { projectId } = wait.owner;
          for (const other of forLimit) if (other.wait.owner.projectId === projectId) other.lookedAtMs = nowMs;
        }
        for (const waiter of firsts.filter((first) => fitting.includes(first) || !canBeAsked(first.claim))) {
          if (waiter.state !== 'waiting') continue;
          waiter.promised = [];
          submit(waiter);
        }
      }
    } catch {
      // The database is away; the next look comes soon.
    } finally {
      isOfferingByLimits = false;
    }
  };

  // Lines

  const entered = (waiter: Waiter, place: WaitingPlace): void => {
    const nowMs = performance.now();
    const hasNumberBack = place.waitedMs > nowMs - waiter.sinceMs + storedAfterMs;
    if (hasNumberBack && waiter.state === 'waiting') {
      drop(waiter);
      waiter.sinceMs = nowMs - place.waitedMs;
      if (waiter.waitsFor === 'room') forRoom.add(waiter, false);
      else insertInOrder(forLimit, waiter);
    } else if (hasNumberBack) waiter.sinceMs = nowMs - place.waitedMs;
    waiter.number = place.number;
    if (waiter.wait.line === undefined || waiter.state !== 'entering') return;
    waiter.state = 'in line';
    const line = lines.get(lineOf(waiter)) ?? [];
    lines.set(lineOf(waiter), line);
    const later = line.findIndex(({ number }) => number > waiter.number);
    line.splice(later === -1 ? line.length : later, 0, waiter);
    if (place.isFirst && line[0] === waiter) submit(waiter);
    else void tryOutAside(waiter);
  };

  /** Refuses a wrong claim that waits without having been tried, and finds what it waits for. */
  const tryOutAside = async (waiter: Waiter): Promise<void> => {
    try {
      await claims.tryOut(waiter.claim);
    } catch (error) {
      if (waiter.state !== 'in line' && waiter.state !== 'waiting') return;
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
    if (line.length === 0) lines.delete(lineOf(waiter));
    else if (index === 0) void lookAtLines();
  };

  /** Claims without a line that were refused because their rows are not there, or because their wait was ended. */
  const inDoubt = new Set<Waiter>();
  let isLookingAtLines = false;
  let mustLookAtLines = false;
  let lookAtLinesAtMs = 0;
  /** Asks the database which claims are the first ones of their lines, and which another process has ended. */
  const lookAtLines = async (): Promise<void> => {
    mustLookAtLines = true;
    if (isLookingAtLines) return;
    isLookingAtLines = true;
    try {
      while (mustLookAtLines && seats.size > 0) {
        mustLookAtLines = false;
        const firsts = [...lines.values()].flatMap(([first]) => (first?.state === 'in line' ? [first.key] : []));
        const doubted = Array.from(inDoubt, ({ key }) => key);
        const news = await repeatLostRaces(() => lookAtWaiting(database, process, [...firsts, ...doubted]));
        const isElsewhere = news.some(({ what }) => what === 'elsewhere');
        lookAtLinesAtMs = performance.now() + (isElsewhere ? lookElsewhereEveryMs : lookAtOthersEveryMs);
        for (const each of news) take(each);
      }
    } catch {
      lookAtLinesAtMs = performance.now() + afterFailureMs;
    } finally {
      isLookingAtLines = false;
    }
  };

  const take = ({ claim, what }: WaitingNews): void => {
    const waiter = waiters.get(claim);
    if (waiter === undefined) return;
    if (what === 'taken over' || what === 'removed') {
      waiter.isStored = false;
      end(waiter, what === 'removed' ? waitEnded() : takenOver());
    } else if (waiter.state !== 'in line') return;
    else if (inDoubt.delete(waiter)) {
      waiter.isStored = what !== 'gone';
      letWait(waiter);
    } else if (what === 'first' && lines.get(lineOf(waiter))?.[0] === waiter) submit(waiter);
    else if (what === 'gone') {
      leaveLine(waiter);
      waiter.state = 'entering';
      stored.enter(waiter);
    }
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
        await repeatLostRaces(() => noteHeard(database, process));
        await repeatLostRaces(() => forgetWaiting(database));
      }
    } catch {
      nextMs = afterFailureMs;
    }
    isLooking = false;
    lookLater(nextMs);
  };
  const lookLater = (ms = lookEveryMs): void => {
    if (timer !== undefined || isLooking || (seats.size === 0 && !stored.hasWork())) return;
    timer = setTimeout(() => void look(), ms);
    timer.unref();
  };

  let isNoticing = false;
  return {
    get size() {
      return seats.size;
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
      await stored.settled();
    },
  };
}

/** How many rows one statement stores. */
const storedAtOnce = 1000;

/** The rows of the claims that wait. All statements that write them run one after the other. */
type Stored = {
  /** Gives a claim of a line its number. */
  enter(waiter: Waiter): void;
  /** Resolves when no statement is under way that stores the claim: from then on it is known whether it has a row. */
  entered(waiter: Waiter): Promise<void>;
  leave(waiter: Waiter, how: LeavingClaim['how']): void;
  /** Stores what should be stored by now, and what has changed. */
  keepUp(waiters: readonly Waiter[]): void;
  hasWork(): boolean;
  settled(): Promise<void>;
};

function openStored(
  database: Database,
  process: string,
  told: {
    /** Whether a claim of these consumers waits, or comes. */
    isPresent(key: string): boolean;
    onEntered(waiter: Waiter, place: WaitingPlace): void;
    onFailed(waiter: Waiter, error: unknown): void;
    onLeft(): void;
  },
): Stored {
  const entering: Waiter[] = [];
  /** The claims that a statement is storing. */
  let storing: { readonly waiters: readonly Waiter[]; readonly done: Promise<void> } | undefined;
  let leaving: { readonly waiter: Waiter; readonly how: LeavingClaim['how'] }[] = [];
  let describing: readonly Waiter[] = [];
  let working: Promise<void> | undefined;

  const work = (): void => {
    // All that comes in one turn of the event loop shares a statement.
    working ??= new Promise<void>((resolve) => setImmediate(resolve)).then(workThrough).finally(() => {
      working = undefined;
    });
  };
  const workThrough = async (): Promise<void> => {
    while (entering.length + leaving.length + describing.length > 0) {
      // If the same claim came again, its row is that of the new request.
      const gone = leaving.filter(({ waiter }) => !told.isPresent(waiter.key));
      leaving = [];
      try {
        await leave(gone);
      } catch {
        leaving = [...gone, ...leaving];
        return; // the database is away; the next look tries again
      }
      const coming = entering.splice(0, storedAtOnce);
      const waiters = coming.filter(({ state }) => state === 'entering' || state === 'waiting');
      storing = { waiters, done: enter(waiters) };
      await storing.done;
      storing = undefined;
      const described = describing.filter(({ state }) => state !== 'settled');
      describing = [];
      for (const waiter of described) waiter.isDescribed = true;
      if (described.length > 0) await describeWaiting(database, process, described.map(rowOf)).catch(() => {});
    }
  };
  const leave = async (
    gone: readonly { readonly waiter: Waiter; readonly how: LeavingClaim['how'] }[],
  ): Promise<void> => {
    if (gone.length === 0) return;
    // The number of a claim that has left before it was stored is kept as well.
    const unstored = new Map(gone.flatMap(({ waiter }) => (waiter.isStored ? [] : [[waiter.key, waiter]])));
    if (unstored.size > 0) {
      await repeatLostRaces(() => enterWaiting(database, process, [...unstored.values()].map(rowOf)));
    }
    await repeatLostRaces(() =>
      leaveWaiting(
        database,
        process,
        gone.map(({ waiter, how }) => ({ claim: waiter.key, how })),
      ),
    );
    told.onLeft();
  };
  const enter = async (coming: readonly Waiter[]): Promise<void> => {
    if (coming.length === 0) return;
    try {
      const places = await repeatLostRaces(() => enterWaiting(database, process, coming.map(rowOf)));
      const byKey = new Map(places.map((place) => [place.claim, place]));
      for (const waiter of coming) {
        const place = byKey.get(waiter.key);
        if (place === undefined) continue;
        waiter.isStored = true;
        if (waiter.state === 'settled') leaving.push({ waiter, how: 'left' });
        else told.onEntered(waiter, place);
      }
    } catch (error) {
      for (const waiter of coming) if (waiter.wait.line !== undefined) told.onFailed(waiter, error);
    }
  };

  return {
    enter: (waiter) => {
      entering.push(waiter);
      work();
    },
    entered: async (waiter) => {
      if (storing?.waiters.includes(waiter)) await storing.done;
    },
    leave: (waiter, how) => {
      if (!waiter.isStored && how === 'ended') return;
      leaving.push({ waiter, how });
      work();
    },
    keepUp: (waiters) => {
      const nowMs = performance.now();
      for (const waiter of waiters) {
        const isDue = waiter.wait.line === undefined && nowMs - waiter.sinceMs >= storedAfterMs;
        if (!waiter.isStored && isDue && !entering.includes(waiter)) entering.push(waiter);
      }
      describing = waiters.filter(({ isStored, isDescribed }) => isStored && !isDescribed);
      if (entering.length + leaving.length + describing.length > 0) work();
    },
    hasWork: () => leaving.length > 0,
    settled: async () => {
      await working;
    },
  };
}

/** A claim is known by its consumers. */
const keyOf = ({ consumers }: Claim): string =>
  createHash('sha256').update(consumerNames(consumers).join()).digest('hex');

const consumerNames = (consumers: Claim['consumers']): readonly string[] => consumers.map(({ uuid }) => uuid).sort();

/** Different for each line of each project; the same for all claims without a line of a project. */
const lineOf = ({ wait: { line, owner } }: Waiter): string => JSON.stringify([owner.projectId, line ?? null]);

const rowOf = ({ key, claim, wait, sinceMs, endsAtMs, waitsFor, condition }: Waiter): WaitingClaim => {
  const nowMs = performance.now();
  return {
    claim: key,
    consumers: consumerNames(claim.consumers),
    projectId: wait.owner.projectId,
    userId: wait.owner.userId,
    line: wait.line ?? null,
    waitedMs: nowMs - sinceMs,
    waitMs: Math.max(0, endsAtMs - nowMs),
    waitsFor,
    condition,
  };
};

function* promisedAmounts(waiters: Iterable<Waiter>): Generator<readonly TakenAmount[]> {
  for (const { promised } of waiters) if (promised !== undefined) yield promised;
}

/** Of claims that exceed the same limits as long as the first one does, the first one. */
function* firstsOfKinds(waiters: readonly Waiter[]): Generator<Waiter> {
  const seen = new Set<string>();
  for (const waiter of waiters) {
    const kind = kindOf(waiter);
    if (seen.has(kind)) continue;
    seen.add(kind);
    yield waiter;
  }
}

/** Equal for claims that exceed the same limits, and fit at the same places. */
const kindOf = ({ claim, wait, index }: Waiter): string =>
  JSON.stringify([wait.owner.projectId, claim.consumers[0]?.consumerType, placesAlike(claim) ?? index]);

const clientLeft = (): ApiError => badRequest('The client has left.');
const takenOver = (): ApiError =>
  conflict('A later request for the same consumers waits in the place of this one.', errorCodes.concurrentUpdate);
const waitEnded = (): ApiError =>
  conflict('The wait of the claim was ended by DELETE /waiting.', errorCodes.noCandidates);
const notItsTurn = ({ wait: { line = '' } }: Waiter): ClaimRefused =>
  new ClaimRefused('no candidates', `The turn of the claim in line ${JSON.stringify(line)} has not come in this time.`);
const processEnds = (): ApiError =>
  tryLater(
    'The process ends. Ask again with the same consumers: the claim keeps its place.',
    1 + Math.floor(Math.random() * 3),
  );
const tooMany = ({ wait: { client } }: Waiter): ApiError =>
  new ApiError(
    429,
    `As many claims wait at this process as may ([placement] max_waiting), and ${client} has no place among them. Please retry later.`,
    { headers: { 'retry-after': '5' } },
  );
