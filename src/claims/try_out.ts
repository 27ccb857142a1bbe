import type { Database } from '../../db/engine/connect.ts';
import { repeatLostRaces } from '../../db/engine/lost_race.ts';
import { type ConsumerState, readConsumers } from '../../db/statements/claims/read_consumers.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { FleetKeeper } from '../fleet/keeper.ts';
import { type Claim, ClaimRefused } from './claim.ts';
import { haveTheSame } from './give_refusals.ts';
import { judge } from './judge.ts';
import { type ClaimOutcome, generationsAfter, outcomeOf } from './outcome.ts';
import { needsOwner, pending, readBy } from './pending_claim.ts';

/**
 * Judges a claim on a fresh fleet, and writes nothing. What the consumers have is read before the fleet and after it: only where it
 * is the same both were true at one moment; otherwise the claim is judged again.
 *
 * @returns what the claim would come to
 * @throws ClaimRefused
 */
export async function tryOut(database: Database, fleet: FleetKeeper, claim: Claim): Promise<ClaimOutcome> {
  const asked = pending(claim);
  const consumers = readBy(asked);
  const readStates = () => repeatLostRaces(() => readConsumers(database, consumers, needsOwner(asked)));
  for (let before = await readStates(); ; ) {
    const outcome = judgeOn(await fleet.fresh(), claim, before);
    const after = await readStates();
    if (haveTheSame(consumers, before, after)) {
      if (outcome instanceof ClaimRefused) throw outcome;
      return outcome;
    }
    before = after;
  }
}

function judgeOn(fleet: Fleet, claim: Claim, states: ReadonlyMap<string, ConsumerState>): ClaimOutcome | ClaimRefused {
  try {
    const { demands, placement, ...write } = judge(fleet, claim, states, new Map());
    return outcomeOf({ write, demands, placement }, generationsAfter(write));
  } catch (error) {
    if (error instanceof ClaimRefused) return error;
    throw error;
  }
}
