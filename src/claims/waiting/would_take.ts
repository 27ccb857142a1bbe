import type { Fleet } from '../../fleet/model/fleet.ts';
import type { Provider } from '../../fleet/model/provider.ts';
import type { CandidateRequest } from '../../search/request.ts';
import { namedOutside, namesOthers } from '../affinity.ts';
import { type Claim, ClaimRefused } from '../claim.ts';
import { placeConsumers, takenByPlain } from '../placing.ts';

/** An amount of a class of a provider, by ids. */
export type TakenAmount = { readonly providerId: number; readonly classId: number; readonly amount: number };

const prediction = { isCertain: false, isPrediction: true, avoided: new Set<string>() } as const;

/**
 * The amounts that a claim would take now, as far as a fleet shows; undefined if the claim fits nowhere. Empty if only judging decides.
 *
 * @param claim one for which `canBePredicted` is true
 * @param only the trees to search, by their roots, for a claim of one consumer; undefined for all
 */
export function wouldTake(
  fleet: Fleet,
  claim: Claim,
  only: ReadonlySet<Provider> | undefined,
): readonly TakenAmount[] | undefined {
  const isOfOne = claim.consumers.length === 1;
  if (only !== undefined && !isOfOne && !mayFitTogether(fleet, claim, only)) return undefined;
  try {
    const placement = placeConsumers(fleet, claim, new Map(), { ...prediction, only: isOfOne ? only : undefined });
    return placement.claim.consumers.flatMap((consumer) =>
      takenByPlain(fleet, consumer).map(({ provider, classId, amount }) => ({
        providerId: provider.id,
        classId,
        amount,
      })),
    );
  } catch (error) {
    if (!(error instanceof ClaimRefused)) throw error;
    return error.reason === 'no candidates' ? undefined : [];
  }
}

/**
 * Whether one of the consumers of a claim fits alone in some trees. If no consumer fits, the room that became free there does not help.
 */
const mayFitTogether = (fleet: Fleet, claim: Claim, only: ReadonlySet<Provider>): boolean =>
  claim.consumers.some(namesOthers) ||
  claim.consumers.some(
    (consumer) =>
      consumer.queries !== undefined &&
      wouldTake(fleet, { consumers: [consumer], inventories: [], placing: [0] }, only) !== undefined,
  );

/** Whether the fleet alone decides if a claim fits: its consumers are new, and its queries name no other consumers. */
export const canBePredicted = (claim: Claim): boolean =>
  claim.consumers.every(({ knownGeneration }) => knownGeneration === null) && namedOutside(claim).length === 0;

const numbers = new WeakMap<CandidateRequest, number>();
let last = 0;

/** A key that is equal for claims that fit on the same providers. Only a claim of one new consumer has a key, made of its queries. */
export function fitKey(claim: Claim): string | undefined {
  const [consumer, ...others] = claim.consumers;
  if (consumer?.queries === undefined || others.length > 0 || !canBePredicted(claim)) return undefined;
  return consumer.queries.map(({ request }) => numberOf(request)).join(' ');
}

/** Equal texts of a query are parsed to the same request object while it is cached (src/api/allocations). */
function numberOf(request: CandidateRequest): number {
  const known = numbers.get(request) ?? ++last;
  numbers.set(request, known);
  return known;
}
