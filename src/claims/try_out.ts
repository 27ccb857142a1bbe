import type { Database } from '../../db/engine/connect.ts';
import { repeatLostRaces } from '../../db/engine/failures.ts';
import { readClock } from '../../db/engine/time.ts';
import type { ProjectUsage } from '../../db/statements/claims/project_usages.ts';
import { type ConsumerState, readConsumers } from '../../db/statements/claims/read_allocations.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import { inBatches } from '../queue/queue.ts';
import { untilDone } from '../request/until_done.ts';
import { type Claim, type ClaimOutcome, ClaimRefused, lostTooOften } from './claim.ts';
import { judge } from './judge.ts';
import type { LostRaceOptions } from './judge_batch.ts';
import { type JudgingFleet, type LimitReads, projectUsageChangesOf } from './limits.ts';
import { pending, readBy } from './pending_claim.ts';
import { generationsAfter, haveTheSame, isByCapacity, outcomeOf } from './write_batch.ts';

/** For how many claims one statement reads the consumers. */
const batchLimit = 256;

/** Judges a claim, and writes nothing. @returns the outcome that a write would have @throws ClaimRefused */
type DryRun = (claim: Claim) => Promise<ClaimOutcome>;

type DryRunOptions = Pick<LostRaceOptions, 'conflictRetryCount'> & { readonly limits: LimitReads };

/** Dry runs at the same time share the statements that read their consumers. */
export function openDryRuns(database: Database, fleet: FleetKeeper, options: DryRunOptions): DryRun {
  const read = openSharedReads(database);
  return (claim) => dryRun({ database, fleet, read }, claim, options);
}

/**
 * Judges a claim on a fresh fleet, and writes nothing. The allocations of the consumers are read before the fleet and after it. If both
 * reads are equal, allocations and fleet are of one snapshot. If not, the claim is judged again, as often as a claim that is written.
 *
 * @returns the outcome that a write of the claim would have
 * @throws ClaimRefused
 */
async function dryRun(
  { database, fleet, read }: { database: Database; fleet: FleetKeeper; read: SharedReads },
  claim: Claim,
  { conflictRetryCount, limits }: DryRunOptions,
): Promise<ClaimOutcome> {
  const item = pending(claim);
  const consumers = readBy(item);
  const readStates = () => read(consumers);
  const expiresAtMs = await endsOfTerms(database, claim);
  let before = await readStates();
  const attempt = async (): Promise<ClaimOutcome | undefined> => {
    const states = before;
    const known = await fleet.fresh();
    const judged = judgeOn(known, claim, states, expiresAtMs);
    const outcome = (await exceededBy(judged, { known, snapshot: fleet.snapshot })) ?? judged;
    before = await readStates();
    if (outcome === 'changed' || !haveTheSame(consumers, states, before)) return undefined;
    if (outcome instanceof ClaimRefused) throw outcome;
    return outcome.outcome;
  };
  /** The refusal for a limit comes before the refusal for lack of room. */
  const exceededBy = async (judged: JudgedDryRun, judging: JudgingFleet): ReturnType<LimitReads['ofClaim']> => {
    if (!judging.known.limits.isCounting) return undefined;
    if (!(judged instanceof ClaimRefused)) return limits.ofUsages(judging, judged.usages);
    return isByCapacity(judged) ? limits.ofClaim(judging, claim, before) : undefined;
  };
  return untilDone(attempt, { attempts: conflictRetryCount + 1, lostRace: lostTooOften });
}

/** Reads consumers with their owners, in one snapshot. */
type SharedReads = (uuids: readonly string[]) => Promise<ReadonlyMap<string, ConsumerState>>;

/** Reads that are requested while one is under way share the next statement. */
const openSharedReads = (database: Database): SharedReads =>
  inBatches(database, { limit: batchLimit }, async (batch) => {
    const uuids = new Set(batch.flatMap(({ item }) => item));
    const states = await repeatLostRaces(() => readConsumers(database, [...uuids], true));
    for (const { item, resolve } of batch) {
      resolve(
        new Map(
          item.flatMap((uuid) => {
            const state = states.get(uuid);
            return state === undefined ? [] : [[uuid, state] as const];
          }),
        ),
      );
    }
  });

/** When the terms of a claim would expire, by the clock of the database. */
async function endsOfTerms({ kysely }: Database, { consumers }: Claim): Promise<ReadonlyMap<string, number>> {
  const granted = consumers.flatMap(({ uuid, term }) => (typeof term === 'object' ? [{ uuid, ...term }] : []));
  if (granted.length === 0) return new Map();
  const nowMs = await repeatLostRaces(() => readClock({ kysely }));
  return new Map(granted.map(({ uuid, seconds }) => [uuid, nowMs + seconds * 1000]));
}

/** The outcome that a write of a claim would have, and what it would add to the usages of projects. */
type JudgedDryRun = { readonly outcome: ClaimOutcome; readonly usages: readonly ProjectUsage[] } | ClaimRefused;

function judgeOn(
  fleet: Fleet,
  claim: Claim,
  states: ReadonlyMap<string, ConsumerState>,
  expiresAtMs: ReadonlyMap<string, number>,
): JudgedDryRun {
  try {
    const { usageChanges, placement, ...write } = judge(fleet, claim, states);
    const formerGenerations = new Map([...states].map(([uuid, state]) => [uuid, state.formerGenerations]));
    const written = { generations: generationsAfter(write), expiresAtMs, formerGenerations };
    const usages = claim.isReshape ? [] : projectUsageChangesOf(write.consumers, states);
    return { outcome: outcomeOf({ write, usageChanges, placement }, written), usages };
  } catch (error) {
    if (error instanceof ClaimRefused) return error;
    throw error;
  }
}
