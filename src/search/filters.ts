import type { Fleet } from '../fleet/model/fleet.ts';
import type { Postings } from '../fleet/model/postings.ts';
import { inventoryOf, type Provider, treeOf, treeSize } from '../fleet/model/provider.ts';
import { hasRoomFor } from '../placement/inventory.ts';

/** A filter by traits, as ids: at least one trait of each list in `required`, and none of `forbidden`. */
export type TraitIds = { readonly required: readonly (readonly number[])[]; readonly forbidden: readonly number[] };

/**
 * The conditions that one provider must meet by itself, with ids instead of names. A condition that request groups of candidates
 * have as well is a field of it, with its check in `satisfiesAlone`, in `checksOf`, and in `fewestFor` if the fleet
 * has an index for it. A filter that only lists have, such as the name, is in `find` of `src/api/resource_providers/filters.ts`.
 */
export type ProviderFilter = {
  readonly resources: readonly { readonly classId: number; readonly amount: number }[];
  readonly traits: TraitIds;
  /** At least one aggregate of each inner list. */
  readonly memberOf: readonly (readonly string[])[];
  readonly forbiddenAggregates: readonly string[];
  /** The root of the tree in which it must be. */
  readonly treeRoot: Provider | undefined;
};

/** The filter that every provider satisfies. */
export const anyProvider: ProviderFilter = {
  resources: [],
  traits: { required: [], forbidden: [] },
  memberOf: [],
  forbiddenAggregates: [],
  treeRoot: undefined,
};

/** Whether a provider by itself satisfies a filter. */
export function satisfiesAlone(provider: Provider, filter: ProviderFilter): boolean {
  if (filter.treeRoot !== undefined && provider.root !== filter.treeRoot) return false;
  for (const { classId, amount } of filter.resources) if (!hasRoom(provider, classId, amount)) return false;
  return isOfKind(provider, filter);
}

/** Whether a provider has the traits and aggregates that a filter requires, and none that it forbids. */
export const isOfKind = (provider: Provider, filter: ProviderFilter): boolean =>
  satisfiesTraits(provider.traitIds, filter.traits) &&
  isMemberOf(provider, filter.memberOf) &&
  !isInAny(provider, filter.forbiddenAggregates);

/** Whether a provider can give an amount of a class. */
export function hasRoom(provider: Provider, classId: number, amount: number): boolean {
  const inventory = inventoryOf(provider, classId);
  return inventory !== undefined && hasRoomFor(inventory, amount);
}

/**
 * The checks of a filter: a provider satisfies the filter if all of them hold, as `satisfiesAlone` says. They are for many providers, most
 * of which share their traits and aggregates with others.
 */
export function checksOf(filter: ProviderFilter): ((provider: Provider) => boolean)[] {
  const { resources, traits, memberOf, forbiddenAggregates, treeRoot } = filter;
  const hasTraits = traits.required.length + traits.forbidden.length > 0;
  const hasAggregates = memberOf.length + forbiddenAggregates.length > 0;
  const isInAggregates = (aggregates: Provider['aggregates']): boolean =>
    isMemberOf({ aggregates }, memberOf) && !isInAny({ aggregates }, forbiddenAggregates);
  return [
    ...(treeRoot === undefined ? [] : [({ root }: Provider) => root === treeRoot]),
    ...resources.map(
      ({ classId, amount }) =>
        (provider: Provider) =>
          hasRoom(provider, classId, amount),
    ),
    ...(hasTraits ? [withTraits(traits)] : []),
    ...(hasAggregates ? [onLists(aggregatesOf, isInAggregates)] : []),
  ];
}

/** Some providers: their number, and how they are listed; they are not listed where there is only an upper limit. */
export type FewProviders = { readonly size: number; readonly list: (() => Iterable<Provider>) | undefined };

/**
 * The smallest of some sets that contain every provider which satisfies a filter, and usually others: the providers with a class, with a
 * required trait, in a required aggregate, or of the tree.
 *
 * @param than the smallest set so far, which is returned if none of these is smaller
 */
export function fewestFor(fleet: Fleet, filter: ProviderFilter, than: FewProviders): FewProviders {
  const { resources, traits, memberOf, treeRoot } = filter;
  let fewest = than;
  const consider = (size: number, list: () => Iterable<Provider>): void => {
    if (size < fewest.size) fewest = { size, list };
  };
  const considerAny = <Key>(postings: Postings<Key>, required: readonly (readonly Key[])[]): void => {
    if (required.length > 0) consider(postings.fewest(required).most, () => postings.smallest(required));
  };
  for (const { classId } of resources) consider(fleet.withClass.of(classId).size, () => fleet.withClass.of(classId));
  considerAny(fleet.withTrait, traits.required);
  considerAny(fleet.inAggregate, memberOf);
  if (treeRoot !== undefined) consider(treeSize(treeRoot), () => treeOf(treeRoot));
  return fewest;
}

/** Whether these traits, of one provider or of several together, satisfy the filter. */
export const satisfiesTraits = (traitIds: readonly number[], filter: TraitIds): boolean =>
  hasOneOfEach(traitIds, filter.required) && !hasAny(traitIds, filter.forbidden);

type AggregateMembers = Pick<Provider, 'aggregates'>;

/** Whether the provider itself is in at least one aggregate of each inner list. */
export const isMemberOf = ({ aggregates }: AggregateMembers, required: readonly (readonly string[])[]): boolean =>
  hasOneOfEach(aggregates, required);

/** Whether the provider itself is in one of these aggregates. */
export const isInAny = (provider: AggregateMembers, aggregates: readonly string[]): boolean =>
  hasAny(provider.aggregates, aggregates);

function hasOneOfEach<Item>(list: readonly Item[], required: readonly (readonly Item[])[]): boolean {
  for (const anyOf of required) if (!hasAny(list, anyOf)) return false;
  return true;
}

/** Whether a list has one of these items. A plain loop: with `some`, a closure would be created and collected for each provider. */
export function hasAny<Item>(list: readonly Item[], wanted: readonly Item[]): boolean {
  for (const item of wanted) if (list.includes(item)) return true;
  return false;
}

/**
 * A condition on the traits or the aggregates of a provider. Many providers share one list, so the condition is evaluated once for
 * each list.
 */
function onLists<List extends object>(
  listOf: (provider: Provider) => List,
  holds: (list: List) => boolean,
): (provider: Provider) => boolean {
  const known = new Map<List, boolean>();
  return (provider) => {
    const list = listOf(provider);
    let result = known.get(list);
    if (result === undefined) {
      result = holds(list);
      known.set(list, result);
    }
    return result;
  };
}

const traitsOf = ({ traitIds }: Provider): Provider['traitIds'] => traitIds;
const aggregatesOf = ({ aggregates }: Provider): Provider['aggregates'] => aggregates;

/** Whether a provider satisfies a filter by traits, evaluated once for each list of traits. */
export const withTraits = (filter: TraitIds): ((provider: Provider) => boolean) =>
  onLists(traitsOf, (traitIds) => satisfiesTraits(traitIds, filter));
