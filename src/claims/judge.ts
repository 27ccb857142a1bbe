import {
  type ClaimWrite,
  type ConsumerWrite,
  isAbsent,
  type NamedId,
  type ProviderGuard,
} from '../../db/statements/claims/claim_write.ts';
import type { ConsumerState, SeenAllocation } from '../../db/statements/claims/read_allocations.ts';
import { inventoriesTagOf } from '../fleet/model/entity_tags.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import { isCustom } from '../fleet/model/names.ts';
import type { Provider } from '../fleet/model/provider.ts';
import { ownerOr, shownGeneration } from '../placement/consumer.ts';
import { allocationsTag, amountsByProvider, type EntityTag, isMatch } from '../placement/entity_tag.ts';
import { withName } from '../placement/uuid.ts';
import { noSuchClass } from '../request/errors.ts';
import { maySee, relatedConsumers } from './affinity.ts';
import {
  type Claim,
  ClaimRefused,
  type ConsumerClaim,
  type ExpectedAllocations,
  isByQuery,
  type Placement,
} from './claim.ts';
import {
  type AllocationIds,
  checkNothingLeft,
  judgeCapacity,
  judgeInventories,
  type NewInventories,
  type UsageChange,
} from './judge_capacity.ts';
import { onCertainFleet, type PlacingOptions, placeConsumers } from './placing.ts';

/**
 * Judges a claim by the fleet and by the rows of its consumers. Returns the write, and the generations that must not change before
 * it. Entity tags are checked first; the other checks come in upstream's order.
 *
 * @param states the consumers of the claim; a missing consumer is taken to be new, which the guard of the write proves
 * @throws ClaimRefused
 */
export function judge(
  fleet: Fleet,
  requested: Claim,
  states: ReadonlyMap<string, ConsumerState>,
  options: PlacingOptions = onCertainFleet,
): ClaimWrite & { readonly usageChanges: readonly UsageChange[]; readonly placement: Placement | undefined } {
  checkRights(requested, states);
  checkExpectations(fleet, requested, states, options.isCertain);
  const newInventories = judgeInventories(fleet, requested.inventories);
  for (const consumer of requested.consumers) checkGeneration(consumer, states.get(consumer.uuid));
  const placement = isByQuery(requested) ? placeConsumers(fleet, requested, states, options) : undefined;
  const claim = placement?.claim ?? requested;
  const wanted = claim.consumers.map((consumer) => findProviders(fleet, consumer));
  const allocations = wanted.map((providers) => findClasses(fleet, providers));

  const freed = claim.consumers.flatMap((consumer) => states.get(consumer.uuid)?.allocations ?? []);
  const usageChanges = judgeCapacity(fleet, allocations.flat(), freed, newInventories);
  checkNothingLeft(fleet, newInventories, usageChanges);

  // Generations are raised as upstream raises them: by one for allocations. The reshaper raises them by one more for
  // the inventories after the allocations, and by one for those before them, unless the provider is to have no
  // inventory.
  const bumps = new Map<Provider, number>();
  const bump = (provider: Provider | undefined, by: number): void => {
    if (provider !== undefined) bumps.set(provider, (bumps.get(provider) ?? 0) + by);
  };
  const visited = new Set(allocations.flat().map(({ providerId }) => providerId));
  claim.consumers.forEach((consumer) => {
    if (consumer.allocations.size > 0) return;
    for (const { providerId } of states.get(consumer.uuid)?.allocations ?? []) visited.add(providerId);
  });
  for (const id of visited) bump(fleet.byId.get(id), 1);
  for (const { provider, inventories } of newInventories.values()) bump(provider, inventories.size > 0 ? 2 : 1);

  const consumers = claim.consumers.map((consumer, index) =>
    consumerWrite(consumer, states.get(consumer.uuid), allocations[index] ?? []),
  );
  return {
    providers: [...bumps].map(([provider, by]) => guardOf(provider, by)),
    // A claim of nothing for consumers that have nothing is not written (upstream leaves an empty consumer record behind).
    consumers: consumers.every(isAbsent) ? [] : consumers,
    inventories: [...newInventories.values()].map(({ provider, inventories, removed }) => ({
      providerId: provider.id,
      put: [...inventories].map(([classId, fields]) => ({ classId, ...fields })),
      remove: removed,
    })),
    ...nameGuards(fleet, requested, { allocated: allocations.flat(), newInventories, states, placement }),
    ...(placement === undefined ? {} : placementGuards(requested, placement)),
    ...relied(fleet, requested, states, { placement, locked: bumps }),
    usageChanges,
    placement,
  };
}

const placementGuards = (claim: Claim, { affinity }: Placement): Pick<ClaimWrite, 'affinity' | 'relatedConsumers'> => ({
  affinity,
  relatedConsumers: relatedConsumers(claim),
});

/**
 * The providers of which nothing but the usage may change before the write: also providers whose UUIDs are in the entity tags of an
 * If-Match.
 *
 * @param locked the providers whose rows the write locks
 */
function relied(
  fleet: Fleet,
  claim: Claim,
  states: ReadonlyMap<string, ConsumerState>,
  { placement, locked }: { readonly placement: Placement | undefined; readonly locked: ReadonlyMap<Provider, number> },
): Pick<ClaimWrite, 'reliedOn' | 'reliedOnTrees'> {
  const seen = seenAllocations(claim, states);
  if (seen.length === 0 && placement === undefined) return {};
  const reliedOn = new Set([...(placement?.reliedOn ?? []), ...seen.map(({ providerId }) => providerId)]);
  const trees = new Set<number>();
  for (const id of reliedOn) {
    const provider = fleet.byId.get(id);
    if (provider !== undefined && !locked.has(provider)) trees.add(provider.root.id);
  }
  return { reliedOn: [...reliedOn], reliedOnTrees: [...trees] };
}

/** The allocations that an If-Match describes. */
const seenAllocations = ({ consumers }: Claim, states: ReadonlyMap<string, ConsumerState>) =>
  consumers.filter(({ expected }) => expected !== undefined).flatMap(({ uuid }) => states.get(uuid)?.allocations ?? []);

/** The classes and traits that a claim names, whose ids are in the write. */
function nameGuards(
  fleet: Fleet,
  claim: Claim,
  {
    allocated,
    newInventories,
    states,
    placement,
  }: {
    readonly allocated: readonly AllocationIds[];
    readonly newInventories: NewInventories;
    readonly states: ReadonlyMap<string, ConsumerState>;
    readonly placement: Placement | undefined;
  },
): Pick<ClaimWrite, 'customClasses' | 'customTraits' | 'keptClasses'> {
  const allocatedClasses = customOf(classesOf(fleet, allocated));
  const put = [...newInventories.values()].flatMap(({ inventories }) =>
    Array.from(inventories.keys(), (classId) => ({ classId })),
  );
  const seen = customOf(classesOf(fleet, seenBy(fleet, claim, states)));
  return {
    ...(placement === undefined
      ? { customClasses: allocatedClasses }
      : {
          customClasses: [...new Set([...allocatedClasses, ...placement.names.classes])],
          customTraits: placement.names.traits,
        }),
    ...(put.length + seen.length === 0 ? {} : { keptClasses: [...new Set([...classesOf(fleet, put), ...seen])] }),
  };
}

type OfClass = { readonly classId: number };

const classesOf = ({ classes }: Fleet, rows: readonly OfClass[]): NamedId[] =>
  [...new Set(rows.map(({ classId }) => classId))].flatMap((id) => classes.byId.get(id) ?? []);

const customOf = (classes: readonly NamedId[]): NamedId[] => classes.filter(({ name }) => isCustom(name));

/** The classes that an If-Match of the claim describes: their names are part of its entity tag. */
const seenBy = (fleet: Fleet, claim: Claim, states: ReadonlyMap<string, ConsumerState>): readonly OfClass[] => [
  ...claim.inventories
    .filter(({ ifMatch }) => ifMatch !== undefined)
    .flatMap(({ providerUuid }) => fleet.byUuid.get(providerUuid)?.inventories ?? [])
    .map(({ fields }) => fields),
  ...seenAllocations(claim, states),
];

const guardOf = (provider: Provider, bump: number): ProviderGuard => ({
  providerId: provider.id,
  generation: provider.generation,
  bump,
});

/** A client with limited rights changes no consumer of another owner, and learns only that such a consumer exists. */
function checkRights({ consumers, rights }: Claim, states: ReadonlyMap<string, ConsumerState>): void {
  if (rights === undefined) return;
  const { uncounted } = rights;
  for (const { uuid, consumerType, ...owner } of consumers) {
    const state = states.get(uuid);
    if (!maySee(rights, state)) throw new ClaimRefused('not allowed', rights.rule, { consumer: uuid });
    const presentType = consumerType === undefined ? (state?.consumerType ?? undefined) : undefined;
    if (presentType !== undefined && uncounted?.types.includes(presentType) && !uncounted.allows(owner)) {
      throw new ClaimRefused('not allowed', uncounted.rule);
    }
  }
}

/** A generation that the client sent must be the consumer's. A consumer without a record has none (`null`). */
function checkGeneration(consumer: ConsumerClaim, state: ConsumerState | undefined): void {
  const { knownGeneration, generationGoesOn = false } = consumer;
  const generation = state === undefined ? null : shownGeneration(state, generationGoesOn);
  if (knownGeneration === undefined || knownGeneration === generation) return;
  throw new ClaimRefused(
    'consumer generation',
    `consumer generation conflict - expected ${generation ?? 'null'} but got ${knownGeneration ?? 'None'}`,
    { consumer: withName(consumer.uuid, consumer.name) },
  );
}

function findProviders(fleet: Fleet, consumer: ConsumerClaim): [Provider, ReadonlyMap<string, number>][] {
  return [...consumer.allocations].map(([uuid, resources]) => {
    const provider = fleet.byUuid.get(uuid);
    if (provider === undefined) {
      throw new ClaimRefused('unknown provider', `Allocation for resource provider '${uuid}' that does not exist.`);
    }
    return [provider, resources];
  });
}

function findClasses(fleet: Fleet, wanted: readonly [Provider, ReadonlyMap<string, number>][]): AllocationIds[] {
  return wanted.flatMap(([provider, resources]) =>
    [...resources].map(([name, used]) => {
      const resourceClass = fleet.classes.byName.get(name);
      if (resourceClass === undefined) throw new ClaimRefused('unknown class', noSuchClass(name));
      return { providerId: provider.id, classId: resourceClass.id, used };
    }),
  );
}

function consumerWrite(
  consumer: ConsumerClaim,
  state: ConsumerState | undefined,
  allocations: readonly AllocationIds[],
): ConsumerWrite {
  const generation = state?.generation ?? null;
  const hasOldAllocations = generation === null && (state?.allocations.length ?? 0) > 0;
  const consumerType = consumer.consumerType ?? state?.consumerType ?? null;
  return {
    uuid: consumer.uuid,
    generation,
    formerGenerations: state?.formerGenerations ?? 0,
    recordId: state?.id ?? undefined,
    hasOldAllocations,
    projectExternalId: consumer.projectId,
    userExternalId: consumer.userId,
    consumerType,
    allocations,
    etag: allocations.length === 0 ? null : allocationsTag({ ...consumer, consumerType }),
    seen: consumer.expected === undefined && !hasOldAllocations ? undefined : state?.allocations,
    term: consumer.term,
    name: consumer.name,
    formerName: state?.name ?? null,
  };
}

/**
 * Checks by entity tags that consumers and inventories are as the client has seen them.
 *
 * @param isCertain whether the fleet is fresh, so that providers and classes which it lacks do not exist
 * @throws ClaimRefused
 */
function checkExpectations(
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
    ...ownerOr(incompleteOwner, state),
    consumerType: state.consumerType,
  });
}
