import { isDeepStrictEqual } from 'node:util';
import type { Database } from '../../db/engine/connect.ts';
import { isLockRefused, isLostRace, isOfOneWrite, isTakenIn } from '../../db/engine/failures.ts';
import type { LockWait } from '../../db/engine/slow_lane.ts';
import { isAbsent } from '../../db/statements/claims/claim_write.ts';
import { exceededLimit } from '../../db/statements/claims/project_usages.ts';
import type { ConsumerState } from '../../db/statements/claims/read_allocations.ts';
import { type WriteOptions, type WrittenClaims, writeClaims } from '../../db/statements/claims/write_claims.ts';
import { laterGeneration } from '../../db/statements/generations.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import { type ClaimOutcome, ClaimRefused, cancelled, type RefusalReason } from './claim.ts';
import {
  canBeApplied,
  effectsOf,
  type Judged,
  judgeAgain,
  type LostRaceOptions,
  type Refused,
  roomsOf,
  type Staleness,
} from './judge_batch.ts';
import { type CountingOptions, type JudgingFleet, type LimitReads, limitExceeded } from './limits.ts';
import type { Owners } from './owners.ts';
import { type BatchedClaim, readBy } from './pending_claim.ts';

/**
 * The age at which the fleet is refreshed while other transactions claim on the same providers. Each batch reads in the
 * change log the changes of these transactions since the last refresh, so the last refresh should be recent.
 */
const contestedAgeSeconds = 0.02;

/** A conflict that one batch met is expected for this number of further batches. */
const expectedAfterwards = 8;

/**
 * How often a batch is sent again if a consumer that should be new has a record. After these attempts each claim is judged again.
 */
const sendsAgain = 3;

/**
 * @returns a function that writes judged claims by one statement, answers those that are written, and puts back those
 *   that lost a guard. If it throws, nothing was written for the claims that it has not settled.
 */
export function openBatchWriter(
  database: Database,
  fleet: FleetKeeper,
  staleness: Staleness,
  owners: Owners,
  limits: Pick<LimitReads, 'correct'>,
  options: LostRaceOptions & Pick<CountingOptions, 'uncountedTypes'>,
): (judged: readonly Judged[], wait: LockWait) => Promise<boolean> {
  /**
   * For how many more batches it is expected that other transactions change the same providers: such batches are written
   * with leeway.
   */
  let expectingOthers = 0;
  /** For how many more batches it is expected that consumers which should be new have a record. */
  let expectingRecords = 0;

  /** What the claims were judged by. Call it before any `await`: a refresh may change the fleet. */
  const judgedBy = (judged: readonly Judged[]): Pick<WriteOptions, 'judgedOn' | 'leeway'> => ({
    judgedOn: fleet.snapshot,
    leeway:
      expectingOthers > 0 && judged.every(canBeApplied)
        ? { since: fleet.snapshot, known: fleet.ownWrites, rooms: roomsOf(fleet.known, judged) }
        : undefined,
  });

  /**
   * A consumer that should be new and exists makes the whole batch fail. Sent again with `mayExist`, only its claim
   * loses a guard.
   */
  const send = async (judged: readonly Judged[], wait: LockWait): Promise<WrittenClaims> => {
    const by = judgedBy(judged);
    const writes = judged.map(({ write }) => write);
    expectingRecords = Math.max(0, expectingRecords - 1);
    for (let sent = 1; ; sent += 1) {
      try {
        const { uncountedTypes } = options;
        return await writeClaims(database, writes, { ...by, wait, uncountedTypes, mayExist: expectingRecords > 0 });
      } catch (error) {
        if (!isTakenIn(error, 'consumers') || sent > sendsAgain) throw error;
        expectingRecords = expectedAfterwards;
      }
    }
  };

  /**
   * Handles a failure after which nothing of the batch was written.
   *
   * @throws the same error if judging again would not help.
   */
  const afterFailure = (judged: readonly Judged[], error: unknown): void => {
    if (isLockRefused(error) || isOfOneWrite(error)) throw error;
    staleness.suspect();
    if (!isTakenIn(error, 'consumers') && !isLostRace(error)) throw error;
    for (const each of judged) afterLostRace(each, { readsConsumers: true });
  };

  /** Puts a claim back to be judged again; refuses a claim that has lost too often. */
  const afterLostRace = ({ entry }: Judged, { readsConsumers }: { readonly readsConsumers: boolean }): void => {
    const { item } = entry;
    const again = { ...item, readsConsumers: item.readsConsumers || readsConsumers, judgedOn: 'known fleet' } as const;
    judgeAgain(entry, again, options);
  };

  /** Creates the owners of a claim, and judges the claim again. That happens once, unless another program removes the owners again. */
  const afterMissingOwner = ({ entry, write }: Judged): void => {
    const { item } = entry;
    if (item.hadOwnersMade) judgeAgain(entry, item, options, () => owners.ensure(write));
    else entry.again({ ...item, hadOwnersMade: true }, owners.ensure(write));
  };

  /**
   * Refuses a claim that exceeds a limit. A claim that exceeds it only together with the claims before it in the batch, which may not
   * have been written, is judged again.
   */
  const afterLimit = ({ entry, write }: Judged, { limitedUsage }: WrittenClaims): void => {
    const exceeded = exceededLimit(write.counted?.limits ?? [], limitedUsage);
    if (exceeded === undefined) entry.again(entry.item);
    else entry.reject(limitExceeded(fleet.known, exceeded.guard, exceeded.used));
  };

  /** Shows in the known fleet what was written, and notes whether other transactions change the same providers. */
  const learn = (judged: readonly Judged[], { lost, xid, isContested }: WrittenClaims): boolean => {
    expectingOthers = isContested ? expectedAfterwards : Math.max(0, expectingOthers - 1);
    // After the refresh the next batch finds few changes in the change log. No request waits for this refresh; if the
    // database is unavailable, the next write gets the error.
    if (isContested && fleet.ageSeconds() > contestedAgeSeconds) fleet.fresh().catch(() => {});
    const won = judged.filter((_, index) => lost[index] === undefined);
    const isShown = won.every(canBeApplied) && fleet.applyOwnWrite({ xid, effects: won.flatMap(effectsOf) });
    if (!isShown) staleness.suspect();
    if (lost.some((guard) => guard !== undefined && isOfFleet(guard))) staleness.suspect();
    return isShown && won.length === judged.length;
  };

  return async (all, wait) => {
    const judged: Judged[] = [];
    for (const each of all) {
      if (each.entry.item.claim.precedence?.isCancelled()) each.entry.reject(cancelled());
      else judged.push(each);
    }
    if (judged.length === 0) return true;
    let written: WrittenClaims;
    try {
      written = await send(judged, wait);
    } catch (error) {
      afterFailure(judged, error);
      return false;
    }
    const isAsExpected = learn(judged, written);
    judged.forEach((each, index) => {
      const { entry } = each;
      const guard = written.lost[index];
      if (guard === undefined) entry.resolve(outcomeOf(each, written));
      // Its owners are created beside the batches of claims; only this claim waits for them.
      else if (guard === 'owner') afterMissingOwner(each);
      else if (guard === 'limit') afterLimit(each, written);
      else if (guard === 'usages') entry.again(entry.item, limits.correct());
      else if (guard === 'earlier claim') entry.again(entry.item);
      else if (guard === 'line') entry.reject(notItsTurn());
      else afterLostRace(each, { readsConsumers: guard === 'consumer' });
    });
    return isAsExpected;
  };
}

/** Whether a claim that lost the guard may have been judged by a stale fleet. */
const isOfFleet = (guard: string): boolean => !['owner', 'limit', 'usages', 'line', 'earlier claim'].includes(guard);

/** The refusal of a claim that is not the first one of its line, or whose row in `waiting` is missing. */
const notItsTurn = (): ClaimRefused =>
  new ClaimRefused('not its turn', 'Another claim is before this one in its line.');

// Outcomes

const noOutcome: ClaimOutcome = { consumers: [], providers: new Map() };

/** The generations that the providers of a claim have after it, by their ids, if no other claim is written. */
export const generationsAfter = ({ providers }: Judged['write']): ReadonlyMap<number, number> =>
  new Map(providers.map(({ providerId, generation, bump }) => [providerId, laterGeneration(generation, bump)]));

/**
 * The outcome of a claim that was written, or that a dry run has judged.
 *
 * @param generations of the providers, by their ids, as they were written
 * @param expiresAtMs when the terms of the consumers expire, by their UUIDs
 * @param formerGenerations how many generations the former consumers of new ones had, by their UUIDs
 */
export function outcomeOf(
  { write, usageChanges, placement }: Pick<Judged, 'write' | 'usageChanges' | 'placement'>,
  {
    generations,
    expiresAtMs,
    formerGenerations,
  }: Pick<WrittenClaims, 'generations' | 'expiresAtMs' | 'formerGenerations'>,
): ClaimOutcome {
  if (placement === undefined) return noOutcome;
  const present = write.consumers.filter((consumer) => !isAbsent(consumer));
  const written = new Map(present.map((consumer) => [consumer.uuid, consumer]));
  return {
    consumers: placement.claim.consumers.map(({ uuid, allocations, projectId, userId }) => {
      const {
        generation = null,
        formerGenerations: former = 0,
        consumerType = null,
        formerName = null,
        name = formerName,
        etag = null,
      } = written.get(uuid) ?? {};
      return {
        uuid,
        allocations,
        projectId,
        userId,
        mappings: placement.mappings.get(uuid),
        consumerType,
        name,
        etag,
        expiresAtMs: expiresAtMs.get(uuid) ?? null,
        generation:
          generation === null ? 1 + (formerGenerations.get(uuid) ?? 0) : laterGeneration(generation, 1) + former,
      };
    }),
    providers: new Map(
      usageChanges.map(({ provider: { id, uuid, name, root, generation } }) => [
        uuid,
        { name, root: root.uuid, generation: generations.get(id) ?? generation },
      ]),
    ),
  };
}

// Refusals

type States = ReadonlyMap<string, ConsumerState>;

/**
 * Replaces the refusal for lack of room by the refusal for a limit, for claims that exceed a limit as well.
 *
 * @param states the consumers of the claims with their owners
 * @returns the refusals, and the claims that must be judged again, because limits may have changed
 */
export async function limitsBeforeRoom(
  refused: readonly Refused[],
  limits: Pick<LimitReads, 'ofClaim'>,
  { known, snapshot }: JudgingFleet,
  states: States,
): Promise<{ readonly refused: readonly Refused[]; readonly changed: readonly BatchedClaim[] }> {
  if (!known.limits.isCounting) return { refused, changed: [] };
  const found = await Promise.all(
    refused.map(({ entry, refusal }) =>
      isByCapacity(refusal) ? limits.ofClaim({ known, snapshot }, entry.item.claim, states) : undefined,
    ),
  );
  return {
    refused: refused.flatMap(({ entry, refusal }, index) => {
      const exceeded = found[index];
      return exceeded === 'changed' ? [] : [{ entry, refusal: exceeded ?? refusal }];
    }),
    changed: refused.flatMap(({ entry }, index) => (found[index] === 'changed' ? [entry] : [])),
  };
}

/**
 * Refuses claims finally. Capacity is judged by the usage of the fleet minus what the claim's consumers have. Usage and
 * consumers are read by different statements, so the consumers are read again: if they have the same as before the fleet
 * was read, usage and consumers are of one snapshot, and the refusal is right.
 *
 * @param before the consumers as they were read before the fleet
 * @param readStates reads the consumers again
 * @returns the claims whose consumers have changed, which must be judged again
 */
export async function confirmRefusals(
  refused: readonly Refused[],
  before: States,
  readStates: (batch: readonly BatchedClaim[]) => Promise<States>,
): Promise<readonly BatchedClaim[]> {
  for (const { entry, refusal } of refused) if (!isByCapacity(refusal)) entry.reject(refusal);
  const byCapacity = refused.filter(({ refusal }) => isByCapacity(refusal));
  const now = await readStates(byCapacity.map(({ entry }) => entry));
  const changed: BatchedClaim[] = [];
  for (const { entry, refusal } of byCapacity) {
    if (haveTheSame(readBy(entry.item), before, now)) entry.reject(refusal);
    else changed.push(entry);
  }
  return changed;
}

/** Refusals that depend on the usage of the fleet or of a project, and on the allocations of the consumers. */
const capacityReasons: ReadonlySet<RefusalReason> = new Set([
  'invalid inventory',
  'inventory in use',
  'no candidates',
  'limit',
]);
/** Whether a claim was refused for such a reason. */
export const isByCapacity = ({ reason }: ClaimRefused): boolean => capacityReasons.has(reason);

/** Whether some consumers have the same allocations, at the same generations, in two reads. */
export const haveTheSame = (consumers: readonly string[], before: States, now: States): boolean =>
  consumers.every((uuid) => hasTheSame(before.get(uuid), now.get(uuid)));

const hasTheSame = (a: ConsumerState | undefined, b: ConsumerState | undefined): boolean =>
  a?.generation === b?.generation && isDeepStrictEqual(a?.allocations, b?.allocations);
