import type { FleetKeeper } from '../../fleet/keep/keeper.ts';
import type { Precedence } from '../claim.ts';
import type { Claims } from '../claims.ts';
import type { LimitReads } from '../limits.ts';
import { coalesceCalls } from './coalesced_calls.ts';
import { isBefore, openWaitingGroups } from './groups.ts';
import { openLimitedClaims } from './limited.ts';
import type { Waiter } from './waiter.ts';
import type { TakenAmount } from './would_take.ts';

/** For how long the process looks for claims that fit before other requests have their turn. */
const searchForMs = 10;
/** How long a claim that was refused although it seemed to fit is not retried: longer each time. */
const [shortestPauseMs, longestPauseMs] = [20, 80];
/** The time between two attempts to write a claim if the limits alone do not decide whether the claim exceeds one of them. */
const tryEveryMs = 1_000;

/** The claims that wait for room or for a limit: which of them can be written now, and which go first. */
export type Offers = {
  /** Lets a refused claim wait for room or for a limit. If it was refused although it seemed to fit, it is not retried for a while. */
  add(waiter: Waiter): void;
  /** Adds a claim again that was removed because the time at which its wait began has changed. */
  addAgain(waiter: Waiter): void;
  /** Removes a claim, if it is there. */
  remove(waiter: Waiter): void;
  /** What claims like this one wait for. Two claims are alike if they fit on the same providers and exceed the same limits. */
  alikeWaitFor(waiter: Waiter): Waiter['waitsFor'] | undefined;
  /** Whether earlier claims like this one wait. */
  hasAlikeBefore(waiter: Waiter): boolean;
  /** Whether a claim that is judged must let an earlier one go first. @param waitsForAll as in `Precedence` */
  isBehind(waiter: Waiter, judged: ReadonlySet<Precedence>, waitsForAll: boolean): boolean;
  /** Notes that providers may have more room; an empty list means another change. */
  noteFreed(freed: readonly number[] | 'all'): void;
  /** Notes that a claim is not under way any more: it may have taken other providers than the promised ones. */
  noteEnded(promised: Waiter['promised']): void;
  /** Offers room to the claims that wait for it. */
  offerRoom(): void;
  /** Writes the claims that do not exceed their limits any more, the first ones of each kind. */
  offerByLimits(): void;
};

/**
 * Starts without claims.
 *
 * @param underWay the claims that are about to be judged and written
 * @param onFits called with a claim that seems to fit; the claim must be removed then
 */
export function openOffers(
  fleet: Pick<FleetKeeper, 'known' | 'snapshot' | 'fresh'>,
  limits: Pick<LimitReads, 'ofNew'>,
  { isQueuedBehind }: Pick<Claims, 'isQueuedBehind'>,
  underWay: ReadonlySet<Waiter>,
  onFits: (waiter: Waiter) => void,
): Offers {
  /** The claims that were refused although they seemed to fit, until all trees were checked again. */
  const refusedOffers = new Set<Waiter>();
  const forRoom = openWaitingGroups<Waiter>();
  const forLimit = openLimitedClaims(() => fleet.known.limits);

  let isOffering = false;
  const offerRoom = (): void => {
    if (isOffering || forRoom.size === 0) return;
    const { taken, isDone } = takeFitting();
    for (const { item, amounts } of taken) {
      item.promised = amounts;
      onFits(item);
    }
    if (!isDone) setImmediate(offerRoom);
  };

  const takeFitting = () => {
    isOffering = true;
    try {
      return forRoom.take(fleet.known, promisedAmounts(underWay), searchForMs);
    } finally {
      isOffering = false;
    }
  };

  const offerByLimits = coalesceCalls({
    failed: () => {}, // the database is unavailable; the next round comes soon
    run: async () => {
      for (const waiter of await forLimit.fitting((claims) => limits.ofNew(fleet, claims))) {
        if (waiter.state !== 'waiting') continue;
        waiter.promised = [];
        onFits(waiter);
      }
    },
  });

  const list = (waiter: Waiter, pauseMs: number): void => {
    if (waiter.waitsFor === 'room') forRoom.add(waiter, pauseMs);
    else forLimit.add(waiter);
  };

  return {
    add: (waiter) => {
      const wasOffered = waiter.promised !== undefined;
      waiter.promised = undefined;
      const pauseMs = wasOffered ? Math.min(longestPauseMs, shortestPauseMs * 2 ** waiter.refusals) : 0;
      waiter.refusals = wasOffered ? waiter.refusals + 1 : 0;
      list(waiter, pauseMs);
      const { isPredictable } = waiter;
      if (waiter.waitsFor === 'room') {
        if (wasOffered || !isPredictable) refusedOffers.add(waiter);
      } else {
        const longMs = Math.max(tryEveryMs, 10 * forLimit.size);
        waiter.notBeforeMs = performance.now() + (isPredictable && !waiter.mustBeJudged ? pauseMs : longMs);
        waiter.mustBeJudged = false;
      }
      offerRoom();
    },
    addAgain: (waiter) => list(waiter, 0),
    remove: (waiter) => {
      forRoom.remove(waiter);
      refusedOffers.delete(waiter);
      forLimit.remove(waiter);
    },
    alikeWaitFor: ({ kind, claim }) => {
      if (forLimit.hasKind(kind)) return 'limit';
      return forRoom.hasAlike(claim) ? 'room' : undefined;
    },
    hasAlikeBefore: (waiter) => forLimit.hasKindBefore(waiter) || forRoom.hasAlikeBefore(waiter),
    isBehind: (waiter, judged, waitsForAll) => {
      for (const other of underWay) {
        if (other === waiter || judged.has(other.precedence) || !isBefore(other, waiter)) continue;
        // An equal claim mostly needs the same rows; others would wait for a lock that they do not need.
        const isWaitedFor =
          other.kind === waiter.kind ? waitsForAll || !other.isHeldUp : waitsForAll && !other.isHeldUp;
        // If the queue keeps the other claim behind a third one, the third one may be behind this claim, whether it waits or not.
        if (isWaitedFor && !isQueuedBehind(other.precedence)) return true;
      }
      if (!waitsForAll) return false;
      for (const other of refusedOffers) {
        if (!forRoom.isUnchecked(other)) refusedOffers.delete(other);
        else if (isBefore(other, waiter)) return true;
      }
      return forLimit.hasUncheckedBefore(waiter);
    },
    noteFreed: (freed) => {
      forRoom.noteFreed(freed);
      offerRoom();
      if (forLimit.size > 0 && freed.length > 0) void offerByLimits();
    },
    noteEnded: (promised) => {
      if (promised === undefined || promised.length === 0) return;
      forRoom.noteFreed(promised.map(({ providerId }) => providerId));
      offerRoom();
    },
    offerRoom,
    offerByLimits: () => {
      if (forLimit.size > 0) void offerByLimits();
    },
  };
}

function* promisedAmounts(waiters: Iterable<Waiter>): Generator<readonly TakenAmount[]> {
  for (const { promised } of waiters) if (promised !== undefined) yield promised;
}
