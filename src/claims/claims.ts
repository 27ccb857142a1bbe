import type { Database } from '../../db/connect.ts';
import { repeatLostRaces } from '../../db/lost_race.ts';
import { isTimedOut } from '../../db/sqlstate.ts';
import { findLastingLocks } from '../../db/statements/lasting_locks.ts';
import { type ConsumerState, readConsumers } from '../../db/statements/read_consumers.ts';
import type { FleetKeeper } from '../fleet/keeper.ts';
import { onBehalfOf } from '../request_ids.ts';
import { inTurn } from '../turns/in_turn.ts';
import { refuseParted, takingTurns } from '../turns/parting.ts';
import type { Claim } from './claim.ts';
import { giveRefusals } from './give_refusals.ts';
import { judgeBatch } from './judge_batch.ts';
import { watchForStaleness } from './staleness.ts';
import {
  concerning,
  consumersOf,
  isByTag,
  needing,
  needsOwner,
  rowsOf,
  suspected,
  takeBatch,
  type Waiting,
  waitingFor,
} from './waiting.ts';
import { type BatchWriterOptions, openBatchWriter } from './write_batch.ts';

/** Writes claims; those that arrive while a write is under way go together in the next. */
export type Claims = {
  /** Resolves once the claim is written. @throws ClaimRefused */
  write(claim: Claim): Promise<void>;
};

/**
 * A claim waits in the queue, is judged with its batch by the fleet as it is known (judge_batch.ts), and is written by one
 * statement, whose guards prove what it was judged by (write_batch.ts). Where it loses a guard, or is refused by a picture that may
 * be old, it goes again with the next batch; a refusal is given on a fresh fleet only (give_refusals.ts).
 */
export function openClaims(database: Database, fleet: FleetKeeper, options: BatchWriterOptions): Claims {
  let queue: Waiting[] = [];
  const staleness = watchForStaleness(fleet);
  const write = openBatchWriter(database, fleet, staleness, options);

  const readStates = async (batch: readonly Waiting[]): Promise<ReadonlyMap<string, ConsumerState>> =>
    batch.length > 0
      ? repeatLostRaces(() => readConsumers(database, batch.flatMap(consumersOf), batch.some(needsOwner)))
      : new Map();

  /** @param again is given the claims that are to go with the next batch, also where this throws */
  const processBatch = async (batch: readonly Waiting[], again: Waiting[]): Promise<void> => {
    const reading = readStates(batch.filter((waiting) => waiting.readsConsumers));
    // A refusal is only given on a fleet that is newer than what was read of the consumers: see giveRefusals.
    const mayRefuse = batch.some((waiting) => waiting.refusedOnce);
    if (mayRefuse) await reading;
    // Entity tags are of names, which no guard proves.
    const mustBeFresh = staleness.isSuspected() || mayRefuse || batch.some(isByTag);
    const [states] = await Promise.all([reading, mustBeFresh ? staleness.bringUpToDate() : undefined]);
    const { judged, refused, again: rejudged, isFleetSuspected } = judgeBatch(fleet.known, batch, states);
    if (isFleetSuspected) staleness.suspect();
    again.push(...rejudged);
    const refuse = async (): Promise<void> => {
      const changed = await giveRefusals(refused, states, readStates);
      if (changed.length > 0) staleness.suspect();
      again.push(...changed.map(suspected));
    };
    const results = await Promise.allSettled([write(judged, again), refuse()]);
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  };

  /** Never rejects. */
  const processAndTell = async (batch: readonly Waiting[]): Promise<void> => {
    const again: Waiting[] = [];
    const askedBy = batch.flatMap((waiting) => waiting.askedBy);
    await onBehalfOf(askedBy, () => processBatch(batch, again)).catch(async (error: unknown) => {
      // Those that were answered are not concerned: a promise is settled once.
      const going = new Set(again.map(({ resolve }) => resolve));
      for (const { resolve, reject } of batch) if (!going.has(resolve)) reject(error);
      if (isTimedOut(error)) await refuseWhoNeedsLocked(batch, error);
    });
    queue.unshift(...again);
  };

  /** Of those who were parted from one in vain: while it is asked what is locked, none of them goes. */
  const refuseWhoNeedsLocked = async (inVain: readonly Waiting[], error: unknown): Promise<void> => {
    const concernsIt = concerning(inVain);
    const concerned = queue.filter((waiting) => waiting.alone && concernsIt(waiting));
    if (concerned.length === 0) return;
    const rows = rowsOf(concerned);
    // Where even that takes too long, all may be locked.
    const needsLocked = needing(await findLastingLocks(database, rows).catch(() => rows));
    queue = refuseParted(queue, (waiting) => concernsIt(waiting) && needsLocked(waiting), error);
  };

  const isAloneNext = takingTurns();
  const wake = inTurn(
    database,
    (heldUp: readonly (readonly Waiting[])[]) => {
      const { batch, later } = takeBatch(queue, heldUp, isAloneNext);
      queue = later;
      return batch.length > 0 ? batch : undefined;
    },
    processAndTell,
  );

  return {
    write: (claim) =>
      new Promise((resolve, reject) => {
        queue.push(waitingFor(claim, resolve, reject));
        wake();
      }),
  };
}
