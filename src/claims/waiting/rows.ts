import type { Database } from '../../../db/engine/connect.ts';
import { repeatLostRaces } from '../../../db/engine/failures.ts';
import { readClock } from '../../../db/engine/time.ts';
import {
  describeWaiting,
  type EnteredClaim,
  enterWaiting,
  keepNumbers,
  type LeavingClaim,
  leaveWaiting,
  type WaitingClaim,
} from '../../../db/statements/claims/waiting.ts';
import type { Owner } from '../../placement/consumer.ts';
import type { Claim } from '../claim.ts';
import { inOrderOfUuids, type Waiter } from './waiter.ts';

/** A claim that has waited for this long is stored, so that every process lists it. */
export const storedAfterMs = 200;
/** How many rows one statement stores. */
const storedAtOnce = 1000;

/** The rows of the claims that wait. All statements that write them run one after the other. */
export type WaitingRows = {
  /** Stores a claim. A claim of a line gets its number. */
  enter(waiter: Waiter): void;
  /** Resolves when no statement is under way that stores the claim: from then on it is known whether it has a row. */
  entered(waiter: Waiter): Promise<void>;
  leave(waiter: Waiter, how: LeavingClaim['how']): void;
  /** Stores claims that have waited long enough to be stored, and changed descriptions. */
  keepUp(waiters: readonly Waiter[]): void;
  hasWork(): boolean;
  settled(): Promise<void>;
};

/** Opens the rows of the claims that wait at a process, which is named by its id. */
export function openWaitingRows(
  database: Database,
  process: string,
  events: {
    /** Whether a later request for the same claim has the row of the claim, or is getting it. */
    isTaken(key: string): boolean;
    onEntered(waiter: Waiter, claim: EnteredClaim): void;
    /** A later request for the same claim waits in another process. */
    onOlder(waiter: Waiter): void;
    onFailed(waiter: Waiter, error: unknown): void;
    onLeft(): void;
  },
): WaitingRows {
  const entering = new Set<Waiter>();
  /** The claims that a statement is storing. */
  let storing: { readonly waiters: ReadonlySet<Waiter>; readonly done: Promise<void> } | undefined;
  let leaving: { readonly waiter: Waiter; readonly how: LeavingClaim['how'] }[] = [];
  let describing: readonly Waiter[] = [];
  let working: Promise<void> | undefined;

  const isStoring = (waiter: Waiter): boolean => storing?.waiters.has(waiter) === true;

  const work = (): void => {
    // All claims of one iteration of the event loop share a statement.
    working ??= new Promise<void>((resolve) => setImmediate(resolve)).then(workThrough).finally(() => {
      working = undefined;
    });
  };
  const workThrough = async (): Promise<void> => {
    while (entering.size + leaving.length + describing.length > 0) {
      // If the same claim was requested again, its row belongs to the new request.
      const gone = leaving.filter(({ waiter }) => !events.isTaken(waiter.key));
      leaving = [];
      const isLeft = await leave(gone).then(
        () => true,
        () => false,
      );
      const coming = [...entering.values().take(storedAtOnce)];
      for (const waiter of coming) entering.delete(waiter);
      const present = coming.filter(({ state }) => state !== 'under way' && state !== 'settled');
      const waiters = [...new Map(present.map((waiter) => [waiter.key, waiter])).values()];
      storing = { waiters: new Set(waiters), done: enter(waiters) };
      await storing.done;
      storing = undefined;
      const described = describing.filter(({ state }) => state !== 'settled');
      describing = [];
      for (const waiter of described) waiter.isDescribed = true;
      if (described.length > 0) {
        await describeWaiting(database, process, described.map(descriptionOf)).catch(() => {
          for (const waiter of described) waiter.isDescribed = false; // the next round tries again
        });
      }
      if (isLeft) continue;
      leaving = [...gone, ...leaving];
      return; // the database is unavailable; the next round tries again
    }
  };
  const leave = async (
    gone: readonly { readonly waiter: Waiter; readonly how: LeavingClaim['how'] }[],
  ): Promise<void> => {
    if (gone.length === 0) return;
    // The number of a claim that has left before it was stored is kept as well.
    const unstored = new Map(gone.flatMap(({ waiter }) => (waiter.isStored ? [] : [[waiter.key, waiter]])));
    if (unstored.size > 0) {
      const aheadMs = await clockAhead(database);
      const left = [...unstored.values()].map((waiter) => waitingClaimOf(waiter, aheadMs));
      await repeatLostRaces(() => keepNumbers(database, process, left));
    }
    await repeatLostRaces(() =>
      leaveWaiting(
        database,
        process,
        gone.map(({ waiter, how }) => ({ claim: waiter.key, how })),
      ),
    );
    events.onLeft();
  };
  const enter = async (coming: readonly Waiter[]): Promise<void> => {
    if (coming.length === 0) return;
    for (const waiter of coming) waiter.mayHaveRow = true;
    try {
      const aheadMs = await clockAhead(database);
      const claimsOf = () => coming.map((waiter) => waitingClaimOf(waiter, aheadMs));
      const stored = await repeatLostRaces(() => enterWaiting(database, process, claimsOf()));
      const byKey = new Map(stored.map((each) => [each.claim, each]));
      for (const waiter of coming) {
        const claim = byKey.get(waiter.key);
        waiter.isStored = claim !== undefined;
        if (claim === undefined) events.onOlder(waiter);
        else if (waiter.state === 'settled') leaving.push({ waiter, how: 'left' });
        else events.onEntered(waiter, claim);
      }
    } catch (error) {
      for (const waiter of coming) if (waiter.wait.line !== undefined) events.onFailed(waiter, error);
    }
  };

  return {
    enter: (waiter) => {
      entering.add(waiter);
      work();
    },
    entered: async (waiter) => {
      if (isStoring(waiter)) await storing?.done;
    },
    leave: (waiter, how) => {
      if (!waiter.mayHaveRow && how === 'ended') return;
      leaving.push({ waiter, how });
      work();
    },
    keepUp: (waiters) => {
      const nowMs = performance.now();
      for (const waiter of waiters) {
        const isDue = waiter.wait.line === undefined && nowMs - waiter.sinceMs >= storedAfterMs;
        if (!waiter.isStored && isDue && !isStoring(waiter)) entering.add(waiter);
      }
      describing = waiters.filter(({ isStored, isDescribed }) => isStored && !isDescribed);
      if (entering.size + leaving.length + describing.length > 0) work();
    },
    hasWork: () => leaving.length > 0,
    settled: async () => {
      await working;
    },
  };
}

/** An answer that took longer does not tell the time. */
const promptMs = 100;
/** How often the clock is read until an answer is prompt; the last answer counts in any case. */
const mostAttempts = 3;

/**
 * How far the clock of the database is ahead of `performance.now()`, in milliseconds. The arrival of a request is stored as a time of the
 * database, and not as an age: a statement may wait long for a connection, and the age would be wrong then.
 */
async function clockAhead(database: Database): Promise<number> {
  for (let attempt = 1; ; attempt += 1) {
    const sentMs = performance.now();
    const nowMs = await readClock(database);
    const answeredMs = performance.now();
    if (answeredMs - sentMs < promptMs || attempt === mostAttempts) return nowMs - answeredMs;
  }
}

const descriptionOf = ({ key, endsAtMs, waitsFor, condition }: Waiter) => ({
  claim: key,
  waitMs: Math.max(0, endsAtMs - performance.now()),
  waitsFor,
  condition,
});

/** The owners of consumers that are not a given one, each once. */
function otherOwners(consumers: Claim['consumers'], { projectId, userId }: Owner): readonly Owner[] {
  const others = consumers.filter((other) => other.projectId !== projectId || other.userId !== userId);
  const byText = new Map(others.map((other) => [JSON.stringify([other.projectId, other.userId]), other]));
  return Array.from(byText.values(), (other) => ({ projectId: other.projectId, userId: other.userId }));
}

/** @param aheadMs how far the clock of the database is ahead */
const waitingClaimOf = (waiter: Waiter, aheadMs: number): WaitingClaim => {
  const { claim, wait, sinceMs, cameAtMs } = waiter;
  // If the answer is lost, the request is stored again with the same time: it is known by this, also where its wait was ended meanwhile.
  const askedAtMs = waiter.askedAtMs ?? Math.round(cameAtMs + aheadMs);
  waiter.askedAtMs = askedAtMs;
  const consumers = inOrderOfUuids(claim.consumers);
  return {
    ...descriptionOf(waiter),
    consumers: consumers.map(({ uuid }) => uuid),
    names: consumers.some(({ name }) => typeof name === 'string') ? consumers.map(({ name = null }) => name) : null,
    projectId: wait.owner.projectId,
    userId: wait.owner.userId,
    otherOwners: otherOwners(consumers, wait.owner),
    line: wait.line ?? null,
    waitedMs: performance.now() - sinceMs,
    askedAtMs,
  };
};
