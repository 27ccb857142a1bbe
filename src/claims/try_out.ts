import type { Database } from '../../db/engine/connect.ts';
import { repeatLostRaces } from '../../db/engine/failures.ts';
import { readClock } from '../../db/engine/time.ts';
import { type ConsumerState, readConsumers } from '../../db/statements/claims/read_allocations.ts';
import type { ProjectUsage } from '../../db/statements/project_usages.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import { untilDone } from '../writes/until_done.ts';
import { type Claim, type ClaimOutcome, ClaimRefused, lostTooOften } from './claim.ts';
import { judge } from './judge.ts';
import type { LostRaceOptions } from './judge_batch.ts';
import { type JudgingFleet, type LimitReads, projectUsageChangesOf } from './limits.ts';
import { generationsAfter, outcomeOf } from './outcome.ts';
import { pending, readBy } from './pending_claim.ts';
import { haveTheSame, isByCapacity } from './write_batch.ts';

/**
 * Judges a claim on a fresh fleet, and writes nothing. What the consumers have is read before the fleet and after it: only where it
 * is the same both were true at one moment; otherwise the claim is judged again, as often as one that is written.
 *
 * @returns what the claim would come to
 * @throws ClaimRefused
 */
export async function tryOut(
  database: Database,
  fleet: FleetKeeper,
  claim: Claim,
  { conflictRetryCount, limits }: Pick<LostRaceOptions, 'conflictRetryCount'> & { readonly limits: LimitReads },
): Promise<ClaimOutcome> {
  const asked = pending(claim);
  const consumers = readBy(asked);
  const readStates = () => repeatLostRaces(() => readConsumers(database, consumers, true));
  const expiresAtMs = await endsOfTerms(database, claim);
  let before = await readStates();
  const attempt = async (): Promise<ClaimOutcome | undefined> => {
    const states = before;
    const known = await fleet.fresh();
    const tried = judgeOn(known, claim, states, expiresAtMs);
    const outcome = (await exceededBy(tried, { known, moment: fleet.moment })) ?? tried;
    before = await readStates();
    if (outcome === 'changed' || !haveTheSame(consumers, states, before)) return undefined;
    if (outcome instanceof ClaimRefused) throw outcome;
    return outcome.outcome;
  };
  /** The refusal for a limit comes before that for want of room. */
  const exceededBy = async (tried: Tried, judging: JudgingFleet): ReturnType<LimitReads['ofAsked']> => {
    if (!judging.known.limits.isCounting) return undefined;
    if (!(tried instanceof ClaimRefused)) return limits.ofUsages(judging, tried.usages);
    return isByCapacity(tried) ? limits.ofAsked(judging, claim, before) : undefined;
  };
  return untilDone(attempt, { attempts: conflictRetryCount + 1, lostRace: lostTooOften });
}

/** The ends of the terms that a claim would give, by the clock of the database. */
async function endsOfTerms({ kysely }: Database, { consumers }: Claim): Promise<ReadonlyMap<string, number>> {
  const given = consumers.flatMap(({ uuid, term }) => (typeof term === 'object' ? [{ uuid, ...term }] : []));
  if (given.length === 0) return new Map();
  const nowMs = await repeatLostRaces(() => readClock({ kysely }));
  return new Map(given.map(({ uuid, seconds }) => [uuid, nowMs + seconds * 1000]));
}

/** What a claim would come to, and what it would add to the usages of projects. */
type Tried = { readonly outcome: ClaimOutcome; readonly usages: readonly ProjectUsage[] } | ClaimRefused;

function judgeOn(
  fleet: Fleet,
  claim: Claim,
  states: ReadonlyMap<string, ConsumerState>,
  expiresAtMs: ReadonlyMap<string, number>,
): Tried {
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
