import type { ConsumerState } from '../../db/statements/claims/read_consumers.ts';
import type { SeenAllocation } from '../../db/statements/claims/seen_allocations.ts';
import { inventoriesTagOf } from '../fleet/entity_tags.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { allocationsTag, amountsByProvider, type EntityTag, isMatch } from '../placement/entity_tag.ts';
import { type Claim, ClaimRefused, type ExpectedAllocations } from './claim.ts';

/**
 * Checks by entity tags that consumers and inventories are as the client has seen them.
 *
 * @param isCertain whether the fleet is fresh, so that providers and classes which it lacks are gone
 * @throws ClaimRefused
 */
export function checkExpectations(
  fleet: Fleet,
  claim: Claim,
  states: ReadonlyMap<string, ConsumerState>,
  isCertain: boolean,
): void {
  for (const { providerUuid, ifMatch } of claim.inventories) {
    if (ifMatch === undefined) continue;
    const provider = fleet.byUuid.get(providerUuid);
    if (provider === undefined || isMatch(ifMatch, inventoriesTagOf(fleet, provider))) continue;
    throw new ClaimRefused('unmatched inventories', providerUuid);
  }
  for (const { uuid, expected } of claim.consumers) {
    if (expected === undefined) continue;
    const state = states.get(uuid);
    const isKnown = isCertain || (state?.allocations ?? []).every((allocation) => isShown(fleet, allocation));
    if (isKnown && isMatch(expected.ifMatch, tagOfState(fleet, state, expected))) continue;
    throw new ClaimRefused('unmatched consumer', uuid);
  }
}

const isShown = ({ byId, classes }: Fleet, { providerId, classId }: SeenAllocation): boolean =>
  byId.get(providerId) !== undefined && classes.byId.has(classId);

/** The entity tag of the allocations of a consumer; undefined if it has none. */
function tagOfState(
  fleet: Fleet,
  state: ConsumerState | undefined,
  { incompleteOwner }: ExpectedAllocations,
): EntityTag | undefined {
  if (state === undefined) return undefined;
  const allocations = amountsByProvider(
    state.allocations.flatMap(({ providerId, classId, used }) => {
      const provider = fleet.byId.get(providerId);
      const className = fleet.classes.byId.get(classId)?.name;
      return provider === undefined || className === undefined ? [] : [[provider.uuid, className, used] as const];
    }),
  );
  if (allocations.size === 0) return undefined;
  return allocationsTag({
    allocations,
    projectId: state.projectId ?? incompleteOwner.projectId,
    userId: state.userId ?? incompleteOwner.userId,
    consumerType: state.consumerType,
  });
}
