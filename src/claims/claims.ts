import type { Database } from '../../db/engine/connect.ts';
import { isLockRefused, isOfOneWrite, repeatLostRaces } from '../../db/engine/failures.ts';
import type { LockWait } from '../../db/engine/slow_lane.ts';
import { type ConsumerState, readConsumers } from '../../db/statements/claims/read_allocations.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import { inBatches } from '../queue/queue.ts';
import { type Claim, type ClaimOutcome, ClaimRefused, type Precedence, type RefusalReason } from './claim.ts';
import { awaitLock, findLocked, providerLock, tablesOfClaimsLock } from './claim_locks.ts';
import {
  type Judged,
  judgeAgain,
  judgeBatch,
  type LostRaceOptions,
  openJudgeAhead,
  watchForStaleness,
} from './judge_batch.ts';
import { allCount, type CountingOptions, openLimitReads } from './limits.ts';
import { type Owners, openOwners } from './owners.ts';
import {
  avoidLocked,
  type BatchedClaim,
  needsOwner,
  onFreshFleet,
  type PendingClaim,
  pending,
  providersOf,
  readBy,
  rowsOf,
} from './pending_claim.ts';
import { openDryRuns } from './try_out.ts';
import { confirmRefusals, limitsBeforeRoom, openBatchWriter } from './write_batch.ts';

/** Writes claims. Claims that arrive while a write is under way share the next statement. */
export type Claims = {
  /**
   * Resolves when the claim is written.
   *
   * @throws ClaimRefused if a fresh fleet does not allow it, or it lost too many races
   * @throws LockWaitTooLong if another program held a lock for as long as a statement may take
   */
  write(claim: Claim): Promise<ClaimOutcome>;
  /** Judges a claim as `write` does, on a fresh fleet, and writes nothing. @throws ClaimRefused */
  dryRun(claim: Claim): Promise<ClaimOutcome>;
  /** Creates the projects, users and types that requests name, also requests that are not claims. */
  readonly owners: Owners;
  /** Whether a claim that is being written waits in the queue behind another claim for the same consumer. */
  isQueuedBehind(claim: Precedence): boolean;
};

/** How a claim ended: it was written or refused, or its judgement or its write failed. */
export type ClaimEnd = 'written' | RefusalReason | 'error';

type ClaimsOptions = LostRaceOptions &
  Partial<CountingOptions> & {
    /** Called for each claim that was to be written. */
    readonly onEnd?: (end: ClaimEnd) => void;
  };

/** How many claims one statement writes. With more, a claim would wait longer for this statement than for the next one. */
const batchLimit = 256;
/**
 * This number of consumers by query counts as one claim. If all waiting gangs went with one batch, no gang would be left to
 * judge while the batch is written.
 */
const placedAsOne = 2;

/**
 * A claim waits in the queue. Its batch is judged on the known fleet (judge_batch.ts), and written by one statement. The
 * guards of the statement prove that nothing which the claims were judged by has changed (write_batch.ts). A claim that loses a
 * guard is retried with a later batch. While a batch with gangs is written, the next batch is judged (judge_batch.ts). A claim
 * that the known fleet does not allow is retried too, on a fresh fleet: only a fresh fleet may refuse a claim (write_batch.ts).
 *
 * No two claims of a batch are for the same consumer: the later one must see what the earlier one wrote. A claim that
 * replaces inventories is a batch by itself, since other claims are judged by the inventories of the fleet.
 */
export function openClaims(database: Database, fleet: FleetKeeper, overrides: ClaimsOptions): Claims {
  const options = { ...allCount, ...overrides };
  const limits = openLimitReads(database, options);
  const staleness = watchForStaleness(fleet);
  const owners = openOwners(database);
  const writeBatch = openBatchWriter(database, fleet, staleness, owners, limits, options);

  const readStates = async (
    batch: readonly BatchedClaim[],
    withOwners = false,
  ): Promise<ReadonlyMap<string, ConsumerState>> => {
    if (batch.length === 0) return new Map();
    const claims = batch.map(({ item }) => item);
    return repeatLostRaces(() =>
      readConsumers(database, claims.flatMap(readBy), withOwners || claims.some(needsOwner)),
    );
  };

  const ahead = openJudgeAhead(fleet, staleness, options);
  /** @param isWhole whether these are all claims of their batch */
  const writeJudged = async (judged: readonly Judged[], isWhole: boolean, wait: LockWait): Promise<void> => {
    const noteEnd = ahead.noteWrite(judged, isWhole);
    const noteHeldUp = (isHeldUp: boolean): void => {
      for (const { entry } of judged) entry.item.claim.precedence?.noteHeldUp(isHeldUp);
    };
    let isAsExpected = false;
    try {
      isAsExpected = await writeBatch(judged, wait);
      noteHeldUp(false);
    } catch (error) {
      // If the batch had several claims, `findLocked` says which of them.
      noteHeldUp(isLockRefused(error));
      throw error;
    } finally {
      noteEnd(isAsExpected);
    }
  };

  const processBatch = async (batch: readonly BatchedClaim[], wait: LockWait): Promise<void> => {
    const judgedAhead = ahead.outcomeFor(batch);
    if (judgedAhead !== undefined) return writeJudged(judgedAhead, true, wait);
    // While usages are counted, the owners are needed: the claim changes the usage of their projects.
    const haveOwners = fleet.known.limits.isCounting;
    const read = batch.filter(({ item }) => item.readsConsumers);
    const reading = readStates(read, haveOwners);
    // For a refusal the fleet must be newer than the consumers that were read: see confirmRefusals.
    const mayRefuse = batch.some(({ item }) => item.judgedOn === 'fresh fleet');
    if (mayRefuse) await reading;
    const mustBeFresh = staleness.isSuspected() || mayRefuse;
    const [states] = await Promise.all([reading, mustBeFresh ? staleness.bringUpToDate() : undefined]);
    const { judged, refused, again, failed, isFleetSuspected } = judgeBatch(fleet.known, batch, states, {
      counting: options,
      haveOwners: haveOwners || read.some(({ item }) => needsOwner(item)),
    });
    if (isFleetSuspected) staleness.suspect();
    for (const { entry, item } of again) {
      // A claim of the same consumer that does not wait must not be delayed by a claim that lets earlier claims go first.
      if (item.yields > entry.item.yields) entry.again(item, yielding(), true);
      else entry.again(item);
    }
    for (const { entry, error } of failed) entry.reject(error);
    const refuse = async (): Promise<void> => {
      const byLimits = await limitsBeforeRoom(refused, limits, fleet, states);
      const changed = [...byLimits.changed, ...(await confirmRefusals(byLimits.refused, states, readStates))];
      if (changed.length > 0) staleness.suspect();
      for (const entry of changed) judgeAgain(entry, onFreshFleet(entry.item), options);
    };
    const isWhole = judged.length === batch.length;
    const results = await Promise.allSettled([writeJudged(judged, isWhole, wait), refuse()]);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  };

  const locksOf = (claim: PendingClaim) => providersOf(claim).map(providerLock);
  const write = inBatches<PendingClaim, ClaimOutcome>(
    database,
    {
      limit: batchLimit,
      conflictKeysOf: ({ conflictKeys }) => conflictKeys,
      locksOf,
      sharedLock: tablesOfClaimsLock,
      weightOf: ({ claim: { placing = [] } }) => Math.max(1, placing.length / placedAsOne),
      isAlone: ({ claim }) => claim.inventories.length > 0,
      isOfOne: isOfOneWrite,
      ahead,
      findLocked: async (claims) => {
        const locked = new Set(await findLocked(database, rowsOf(claims), tablesOfClaimsLock));
        for (const claim of claims)
          claim.claim.precedence?.noteHeldUp([...claim.conflictKeys, ...locksOf(claim)].some((key) => locked.has(key)));
        avoidLocked(claims, (uuid) => locked.has(providerLock(uuid)));
        return [...locked];
      },
      awaitLock: (key, wait) => awaitLock(database, key, wait),
    },
    processBatch,
  );
  const queued = openQueuedClaims();
  return {
    write: async (claim) => {
      const item = pending(claim);
      const leave = queued.enter(claim.precedence ?? item, item.conflictKeys);
      try {
        const outcome = await write(item);
        overrides.onEnd?.('written');
        return outcome;
      } catch (error) {
        overrides.onEnd?.(error instanceof ClaimRefused ? error.reason : 'error');
        throw error;
      } finally {
        leave();
      }
    },
    owners,
    isQueuedBehind: queued.isBehind,
    dryRun: openDryRuns(database, fleet, { ...options, limits }),
  };
}

/** How long a claim that lets an earlier claim go first waits before it is judged again. */
const yieldMs = 2;
const yielding = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, yieldMs));

// The queue of claims

/** The claims in the queue, also claims that never wait, by the keys by which the queue orders them. */
type QueuedClaims = {
  /**
   * Adds a claim in the order in which the queue gets it.
   *
   * @param claim an object that identifies the claim
   * @param keys of two claims with a common key, the queue keeps the later one behind the earlier one
   * @returns to be called when the claim is settled
   */
  enter(claim: object, keys: readonly string[]): () => void;
  /** Whether the queue keeps a claim behind another one; not one that the queue does not have. */
  isBehind(claim: object): boolean;
};

/** Starts without claims. */
function openQueuedClaims(): QueuedClaims {
  const keysOf = new Map<object, readonly string[]>();
  const byKey = new Map<string, Set<object>>();
  return {
    enter: (claim, keys) => {
      keysOf.set(claim, keys);
      for (const key of keys) {
        const present = byKey.get(key);
        if (present === undefined) byKey.set(key, new Set([claim]));
        else present.add(claim);
      }
      return () => {
        keysOf.delete(claim);
        for (const key of keys) {
          const present = byKey.get(key);
          present?.delete(claim);
          if (present?.size === 0) byKey.delete(key);
        }
      };
    },
    isBehind: (claim) => {
      for (const key of keysOf.get(claim) ?? []) {
        const [first] = byKey.get(key) ?? [];
        if (first !== claim) return true;
      }
      return false;
    },
  };
}
