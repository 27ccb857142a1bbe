import type { Database } from '../../db/engine/connect.ts';
import { repeatLostRaces } from '../../db/engine/failures.ts';
import { readClock } from '../../db/engine/time.ts';
import { type ConsumerState, readConsumers } from '../../db/statements/claims/read_allocations.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import { untilDone } from '../writes/until_done.ts';
import { type Claim, type ClaimOutcome, ClaimRefused, lostTooOften } from './claim.ts';
import { judge } from './judge.ts';
import type { LostRaceOptions } from './judge_batch.ts';
import { generationsAfter, outcomeOf } from './outcome.ts';
import { needsOwner, pending, readBy } from './pending_claim.ts';
import { haveTheSame } from './write_batch.ts';

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
  { conflictRetryCount }: Pick<LostRaceOptions, 'conflictRetryCount'>,
): Promise<ClaimOutcome> {
  const asked = pending(claim);
  const consumers = readBy(asked);
  const readStates = () => repeatLostRaces(() => readConsumers(database, consumers, needsOwner(asked)));
  const expiresAtMs = await endsOfTerms(database, claim);
  let before = await readStates();
  const attempt = async (): Promise<ClaimOutcome | undefined> => {
    const states = before;
    const outcome = judgeOn(await fleet.fresh(), claim, states, expiresAtMs);
    before = await readStates();
    if (!haveTheSame(consumers, states, before)) return undefined;
    if (outcome instanceof ClaimRefused) throw outcome;
    return outcome;
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

function judgeOn(
  fleet: Fleet,
  claim: Claim,
  states: ReadonlyMap<string, ConsumerState>,
  expiresAtMs: ReadonlyMap<string, number>,
): ClaimOutcome | ClaimRefused {
  try {
    const { usageChanges, placement, ...write } = judge(fleet, claim, states);
    const formerGenerations = new Map([...states].map(([uuid, state]) => [uuid, state.formerGenerations]));
    const written = { generations: generationsAfter(write), expiresAtMs, formerGenerations };
    return outcomeOf({ write, usageChanges, placement }, written);
  } catch (error) {
    if (error instanceof ClaimRefused) return error;
    throw error;
  }
}
