import type { Database } from '../../db/engine/connect.ts';
import { repeatLostRaces } from '../../db/engine/lost_race.ts';
import type { LockWait } from '../../db/engine/slow_lane.ts';
import { isUnstorable } from '../../db/engine/sqlstate.ts';
import { type ConsumerState, readConsumers } from '../../db/statements/claims/read_consumers.ts';
import { inBatches } from '../batching/batches.ts';
import type { FleetKeeper } from '../fleet/keeper.ts';
import type { Claim } from './claim.ts';
import { giveRefusals } from './give_refusals.ts';
import { judgeBatch } from './judge_batch.ts';
import { awaitLock, consumerLock, findLocked, providerLock, relationLock, tablesLock } from './locks.ts';
import type { ClaimOutcome } from './outcome.ts';
import { openOwners } from './owners.ts';
import {
  avoidLocked,
  type BatchedClaim,
  consumersOf,
  isByTag,
  needsOwner,
  onFreshFleet,
  type PendingClaim,
  pending,
  providersOf,
  readBy,
  rowsOf,
} from './pending_claim.ts';
import { watchForStaleness } from './staleness.ts';
import { tryOut } from './try_out.ts';
import { type BatchWriterOptions, openBatchWriter } from './write_batch.ts';

/** Writes claims; those that arrive while a write is under way go together in the next. */
export type Claims = {
  /** Resolves once the claim is written. @throws ClaimRefused */
  write(claim: Claim): Promise<ClaimOutcome>;
  /** Judges a claim as `write` does, on a fresh fleet, and writes nothing. @throws ClaimRefused */
  tryOut(claim: Claim): Promise<ClaimOutcome>;
};

/** How many claims one statement takes: beyond this, waiting for the next costs less than a longer one. */
const batchLimit = 256;

/**
 * A claim waits in the queue, is judged with its batch by the fleet as it is known (judge_batch.ts), and is written by one
 * statement, whose guards prove what it was judged by (write_batch.ts). Where it loses a guard, or is refused by a fleet that may
 * be old, it goes again with the next batch; a refusal is given on a fresh fleet only (give_refusals.ts).
 *
 * No two claims of a batch concern the same consumer: the later one must see what the earlier did. A claim that brings inventories
 * goes by itself, since all others are judged by the inventories that are there.
 */
export function openClaims(database: Database, fleet: FleetKeeper, options: BatchWriterOptions): Claims {
  const staleness = watchForStaleness(fleet);
  const writeBatch = openBatchWriter(database, fleet, staleness, openOwners(database), options);

  const readStates = async (batch: readonly BatchedClaim[]): Promise<ReadonlyMap<string, ConsumerState>> => {
    if (batch.length === 0) return new Map();
    const claims = batch.map(({ item }) => item);
    return repeatLostRaces(() => readConsumers(database, claims.flatMap(readBy), claims.some(needsOwner)));
  };

  const processBatch = async (batch: readonly BatchedClaim[], wait: LockWait): Promise<void> => {
    const reading = readStates(batch.filter(({ item }) => item.readsConsumers));
    // A refusal is only given on a fleet that is newer than what was read of the consumers: see giveRefusals.
    const mayRefuse = batch.some(({ item }) => item.judgedOn === 'fresh fleet');
    if (mayRefuse) await reading;
    // Entity tags are of names, which no guard proves.
    const mustBeFresh = staleness.isSuspected() || mayRefuse || batch.some(({ item }) => isByTag(item));
    const [states] = await Promise.all([reading, mustBeFresh ? staleness.bringUpToDate() : undefined]);
    const { judged, refused, isFleetSuspected } = judgeBatch(fleet.known, batch, states);
    if (isFleetSuspected) staleness.suspect();
    const refuse = async (): Promise<void> => {
      const changed = await giveRefusals(refused, states, readStates);
      if (changed.length > 0) staleness.suspect();
      for (const { again, item } of changed) again(onFreshFleet(item));
    };
    const results = await Promise.allSettled([writeBatch(judged, wait), refuse()]);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  };

  const write = inBatches<PendingClaim, ClaimOutcome>(
    database,
    {
      limit: batchLimit,
      orderOf: (claim) => [...consumersOf(claim).map(consumerLock), ...claim.related.map(relationLock)],
      locksOf: (claim) => providersOf(claim).map(providerLock),
      sharedLock: tablesLock,
      isAlone: ({ claim }) => claim.inventories.length > 0,
      isOfOne: isUnstorable,
      findLocked: async (claims) => {
        const locked = new Set(await findLocked(database, rowsOf(claims)));
        avoidLocked(claims, (uuid) => locked.has(providerLock(uuid)));
        return [...locked];
      },
      awaitLock: (key, wait) => awaitLock(database, key, wait),
    },
    processBatch,
  );
  return {
    write: (claim) => write(pending(claim)),
    tryOut: (claim) => tryOut(database, fleet, claim),
  };
}
