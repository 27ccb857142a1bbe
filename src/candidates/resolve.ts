import { isMemberOf, satisfiesTraits, type TraitIds } from '../fleet/filters.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { interning } from '../fleet/interned.ts';
import type { Provider } from '../fleet/provider.ts';
import { badRequest, noSuchClass } from '../rest/errors.ts';
import type { CandidateRequest, RequestGroup } from './request.ts';
import { keptGroups } from './tree_options.ts';
import { type ResolvedOrder, resolveOrder } from './tree_visit.ts';

/** A group with its names looked up. */
export type ResolvedGroup = {
  readonly suffix: string;
  readonly granular: boolean;
  readonly resources: readonly { readonly classId: number; readonly amount: number }[];
  readonly traits: TraitIds;
  readonly memberOf: readonly (readonly string[])[];
  readonly forbiddenAggregates: readonly string[];
  /** The root of the tree that the group is restricted to. */
  readonly treeRoot: Provider | undefined;
  /** The same for the same group in every request: by it trees keep what they offer. Undefined where that is not kept. */
  readonly number: number | undefined;
};

/** A query with its names looked up. */
export type ResolvedRequest = {
  readonly groups: readonly ResolvedGroup[];
  readonly isolate: boolean;
  readonly nested: boolean;
  readonly rootTraits: TraitIds;
  /** Places in `groups`. */
  readonly sameSubtrees: readonly (readonly number[])[];
  /** Undefined where no order of trees is asked for. */
  readonly order: ResolvedOrder | undefined;
};

/** What a query comes to: groups to search for, or the knowledge that nothing can be found. */
export type Resolution = ResolvedRequest | 'nothing';

/**
 * Looks up the names of a query.
 *
 * Upstream searches group by group, and a group without result ends the search before the names of later groups are looked
 * up, as does a root_required that no root has. So an unknown name is an error only if all before it can be satisfied. Names in
 * `order`, which upstream does not have, are looked up first.
 *
 * @param isSatisfiable whether a group by itself has any result
 * @param keeps whether trees are to keep what they offer for these groups; false for variants that are asked for once
 * @throws ApiError 400 for an unknown class or trait
 */
export function resolveRequest(
  fleet: Fleet,
  request: CandidateRequest,
  isSatisfiable: (group: ResolvedGroup, rootTraits: TraitIds) => boolean,
  keeps = true,
): Resolution {
  const order = resolveOrder(fleet, request.order);
  const rootTraits = {
    required: request.rootTraits.required.map((name) => [traitId(fleet, name)]),
    forbidden: request.rootTraits.forbidden.map((name) => traitId(fleet, name)),
  };
  const filtersRoots = rootTraits.required.length + rootTraits.forbidden.length > 0;
  const groups: ResolvedGroup[] = [];
  for (const group of request.groups) {
    let resolved: ResolvedGroup | 'nothing';
    try {
      resolved = resolveGroup(fleet, group, keeps && request.groups.length <= keptGroups);
    } catch (error) {
      const hasRoots = !filtersRoots || fleet.roots.some((root) => satisfiesTraits(root.traitIds, rootTraits));
      if (hasRoots && groups.every((earlier) => isSatisfiable(earlier, rootTraits))) throw error;
      return 'nothing';
    }
    if (resolved === 'nothing') return 'nothing';
    groups.push(resolved);
  }
  const suffixes = groups.map(({ suffix }) => suffix);
  return {
    groups,
    isolate: request.isolate,
    nested: request.nested,
    rootTraits,
    sameSubtrees: request.sameSubtrees.map((named) => [...named].map((suffix) => suffixes.indexOf(suffix))),
    order,
  };
}

/** Looks up the names of a variant, of which trees keep nothing: it would push out what they keep for plain queries. */
export const resolveVariant = (fleet: Fleet, request: CandidateRequest): Resolution =>
  resolveRequest(fleet, request, () => true, false);

/** The order of the steps is upstream's: which comes first, an unknown name or an empty result, shows. */
function resolveGroup(fleet: Fleet, group: RequestGroup, keeps: boolean): ResolvedGroup | 'nothing' {
  const resources = [...group.resources].map(([name, amount]) => {
    const resourceClass = fleet.classes.byName.get(name);
    if (resourceClass === undefined) {
      throw badRequest(`Invalid resource class in resources parameter: ${noSuchClass(name)}`);
    }
    return { classId: resourceClass.id, amount };
  });
  const memberOf = group.aggregates.required;
  if (memberOf.length > 0) {
    const members = Iterator.from(fleet.inAggregate.smallest(memberOf));
    if (!members.some((provider) => isMemberOf(provider, memberOf))) return 'nothing';
  }
  const traits = {
    required: group.traits.required.map((anyOf) => anyOf.map((name) => traitId(fleet, name))),
    forbidden: group.traits.forbidden.map((name) => traitId(fleet, name)),
  };
  const treeRoot = group.inTree === undefined ? undefined : fleet.byUuid.get(group.inTree)?.root;
  if (group.inTree !== undefined && treeRoot === undefined) return 'nothing';
  const forbiddenAggregates = group.aggregates.forbidden;
  const { suffix } = group;
  // A tree that is named is the only one that is searched.
  const isKept = keeps && treeRoot === undefined;
  const number = isKept ? numberOf([suffix, resources, traits, memberOf, forbiddenAggregates]) : undefined;
  return { suffix, granular: suffix !== '', resources, traits, memberOf, forbiddenAggregates, treeRoot, number };
}

/** Whatever is longer, with hundreds of aggregates, is hardly asked for again and again. */
const longestKey = 2000;
const numbers = interning<number>(1000);
let latestNumber = 0;

function numberOf(group: readonly unknown[]): number | undefined {
  const key = JSON.stringify(group);
  return key.length > longestKey ? undefined : numbers(key, ++latestNumber);
}

function traitId(fleet: Fleet, name: string): number {
  const trait = fleet.traits.byName.get(name);
  if (trait === undefined) throw badRequest(`No such trait(s): ${name}.`);
  return trait.id;
}
