import { isDeepStrictEqual } from 'node:util';
import type { ConsumerState } from '../../db/statements/claims/read_consumers.ts';
import type { ClaimRefused, RefusalReason } from './claim.ts';
import { type BatchedClaim, readBy } from './pending_claim.ts';

/** A claim that a fresh fleet does not allow, and the reason. */
export type Refused = { readonly entry: BatchedClaim; readonly refusal: ClaimRefused };

type States = ReadonlyMap<string, ConsumerState>;

/**
 * Refuses claims finally. Capacity is judged by the usage of the fleet minus what the claim's consumers have, and these
 * two are read by different statements. So the consumers are read again: if they have the same as before the fleet was
 * read, both were true at one moment, and the refusal is right.
 *
 * @param before the consumers as they were read before the fleet
 * @param readStates reads the consumers again
 * @returns the claims whose consumers have changed, which must be judged again
 */
export async function giveRefusals(
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

/** Refusals that compare the fleet with what the consumers have. */
const capacityReasons: ReadonlySet<RefusalReason> = new Set(['invalid inventory', 'inventory in use', 'no candidates']);
const isByCapacity = ({ reason }: ClaimRefused): boolean => capacityReasons.has(reason);

/** Whether some consumers have the same, at the same generations, in two readings. */
export const haveTheSame = (consumers: readonly string[], before: States, now: States): boolean =>
  consumers.every((uuid) => hasTheSame(before.get(uuid), now.get(uuid)));

const hasTheSame = (a: ConsumerState | undefined, b: ConsumerState | undefined): boolean =>
  a?.generation === b?.generation && isDeepStrictEqual(a?.allocations, b?.allocations);
