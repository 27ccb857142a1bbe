import type { Fleet } from '../fleet/model/fleet.ts';
import { isCustom } from '../fleet/model/names.ts';
import type { Provider } from '../fleet/model/provider.ts';
import type { TreeKey } from '../fleet/model/tree_order.ts';
import type { Resources, TraitFilter } from '../placement/filters.ts';
import { firstStored } from '../placement/spellings.ts';
import { ApiError, badRequest, noSuchClass, noSuchTraits, unknownClass, unknownTraits } from '../request/errors.ts';
import { atOnce, type Pieces } from '../request/turns.ts';
import type { Condition } from './conditions.ts';
import type { ProviderFilter, TraitIds } from './filters.ts';
import type { CandidateRequest, OrderKey, RequestGroup } from './request.ts';

/** A group with its names looked up. */
export type ResolvedGroup = ProviderFilter & {
  readonly suffix: string;
  readonly granular: boolean;
  /**
   * Equal groups of all requests of a fleet have the same number, by which trees cache their options. Undefined if trees must not cache
   * the options of the group.
   */
  readonly number: number | undefined;
};

/** `order` of a query with its names looked up. */
type ResolvedOrder = {
  readonly keys: readonly TreeKey[];
  /** Whether trees of equal keys come in random order, whatever strategy is configured. */
  readonly isRandom: boolean;
};

/** A query with its names looked up. */
export type ResolvedRequest = {
  readonly groups: readonly ResolvedGroup[];
  readonly isolate: boolean;
  readonly nested: boolean;
  readonly rootTraits: TraitIds;
  /** Indexes in `groups`. */
  readonly sameSubtrees: readonly (readonly number[])[];
  /** Undefined without `order`. */
  readonly order: ResolvedOrder | undefined;
};

/** A query with its names looked up; `nothing` if the query has no candidates. */
export type Resolution = ResolvedRequest | 'nothing';

/** Where names are looked up. */
export type KnownNames = Pick<Fleet, 'classes' | 'traits'> & { readonly byUuid: ReadonlyMap<string, Provider> };

/** The checks that decide whether an unknown name is an error. Without these checks, each unknown name is an error. */
type Satisfiable = {
  /** Whether some root has such traits. */
  readonly hasRoot: (rootTraits: TraitIds) => boolean;
  /** Whether some provider is in all these aggregates; not called with an empty list. */
  readonly hasMember: (memberOf: ResolvedGroup['memberOf']) => Pieces<boolean>;
  /** Whether a group by itself has a result. */
  readonly isSatisfiable: (group: ResolvedGroup, rootTraits: TraitIds) => Pieces<boolean>;
  readonly numberOf: Fleet['numberOf'];
};

/** After this number of groups the look-up may pause. */
const groupsAtOnce = 16;

/**
 * Looks up the names of a query.
 *
 * Upstream searches group by group. If a group has no result, or no root satisfies `root_required`, the search ends
 * before the names of later groups are looked up. So an unknown name is an error only if everything before it can be
 * satisfied. Names in `order`, which upstream does not have, are looked up first.
 *
 * @param satisfiable undefined for a variant of a query: a variant is used once, so trees do not cache their options for its groups
 * @throws ApiError 400 for an unknown class or trait
 */
export function* resolveRequest(
  fleet: KnownNames,
  request: CandidateRequest,
  satisfiable: Satisfiable | undefined,
): Pieces<Resolution> {
  const order = resolveOrder(fleet, request.order);
  const { required, forbidden } = request.rootTraits;
  const rootTraits = traitIdsOf(
    fleet,
    { required: required.map((name) => [name]), forbidden },
    { parameter: 'root_required' },
  );
  const filtersRoots = rootTraits.required.length + rootTraits.forbidden.length > 0;
  const groups: ResolvedGroup[] = [];
  for (const group of request.groups) {
    let resolved: ResolvedGroup | 'nothing';
    try {
      resolved = yield* resolveGroup(fleet, group, request, satisfiable);
    } catch (error) {
      if (satisfiable === undefined) throw error;
      if (filtersRoots && !satisfiable.hasRoot(rootTraits)) return 'nothing';
      for (const earlier of groups) if (!(yield* satisfiable.isSatisfiable(earlier, rootTraits))) return 'nothing';
      throw error;
    }
    if (resolved === 'nothing') return 'nothing';
    groups.push(resolved);
    if (groups.length % groupsAtOnce === 0) yield undefined;
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

/** Looks up the names of a variant. Trees cache nothing for a variant, which would evict the cached options of plain queries. */
export const resolveVariant = (names: KnownNames, request: CandidateRequest): Resolution =>
  atOnce(resolveRequest(names, request, undefined));

/**
 * Looks up the names of `order`. Keys behind `random` have no effect, since no trees are equal after it.
 *
 * @returns undefined without `order`
 * @throws ApiError 400 for a class or a trait that does not exist
 */
export function resolveOrder({ classes, traits }: KnownNames, order: readonly OrderKey[]): ResolvedOrder | undefined {
  if (order.length === 0) return undefined;
  const keys = order.map((key): TreeKey | 'random' => {
    if (key.kind === 'random') return 'random';
    if (key.kind === 'prefer') {
      const traitId = traits.byName.get(key.traitName)?.id;
      if (traitId === undefined) throw wrongKey(`prefer:${key.traitName}`, unknownTraits([key.traitName], traits));
      return { kind: 'prefer', traitId };
    }
    const { className, mostFirst } = key;
    const classId = classes.byName.get(className)?.id;
    if (classId === undefined)
      throw wrongKey(`${mostFirst ? '-' : ''}free:${className}`, unknownClass(className, classes));
    return { kind: 'free', classId, mostFirst };
  });
  const random = keys.indexOf('random');
  const counted = random === -1 ? keys : keys.slice(0, random);
  return { keys: counted.filter((key) => key !== 'random'), isRandom: random !== -1 };
}

const wrongKey = (key: string, problem: string) =>
  badRequest(`Invalid query string parameters: order=${key}: ${problem}`);

/** The steps come in upstream's order: the first one that fails decides between an error and an empty answer. */
function* resolveGroup(
  fleet: KnownNames,
  group: RequestGroup,
  { groups }: CandidateRequest,
  satisfiable: Satisfiable | undefined,
): Pieces<ResolvedGroup | 'nothing'> {
  const resources = amountsOf(fleet, group.resources, `resources${group.suffix}`);
  const memberOf = group.aggregates.required;
  if (memberOf.length > 0 && satisfiable !== undefined && !(yield* satisfiable.hasMember(memberOf))) return 'nothing';
  const traits = traitIdsOf(fleet, group.traits, { parameter: `required${group.suffix}` });
  const { inTree } = group;
  const treeRoot = inTree === undefined ? undefined : firstStored(fleet.byUuid, inTree)?.root;
  if (inTree !== undefined && treeRoot === undefined) return 'nothing';
  const forbiddenAggregates = group.aggregates.forbidden;
  const { suffix } = group;
  // With `in_tree` only one tree is searched, so a cache would save little.
  const isCached = satisfiable !== undefined && groups.length <= cachedGroups && treeRoot === undefined;
  const key = isCached ? JSON.stringify([suffix, resources, traits, memberOf, forbiddenAggregates]) : undefined;
  const number = key === undefined || key.length > longestKey ? undefined : satisfiable?.numberOf(key);
  return { suffix, granular: suffix !== '', resources, traits, memberOf, forbiddenAggregates, treeRoot, number };
}

/** A group with a longer key, which names hundreds of aggregates, gets no number: it is unlikely to be queried again. */
const longestKey = 2000;

/** Looks up the classes of the amounts in a parameter. @throws ApiError 400 for a class that does not exist */
export const amountsOf = (
  { classes }: Pick<KnownNames, 'classes'>,
  amounts: Resources,
  parameter: string,
): ProviderFilter['resources'] =>
  Array.from(amounts, ([name, amount]) => {
    const resourceClass = classes.byName.get(name);
    if (resourceClass === undefined) {
      const upstreams = `Invalid resource class in resources parameter: ${noSuchClass(name)}`;
      throw unknownIn(parameter, unknownClass(name, classes), upstreams);
    }
    return { classId: resourceClass.id, amount };
  });

/** Upstream's text does not say which parameter of a query with several groups has the unknown name. */
const unknownIn = (parameter: string, problem: string, upstreams: string): ApiError =>
  new ApiError(400, upstreams, { sentence: `Invalid query string parameters: '${parameter}': ${problem}` });

/**
 * Looks up the traits in a parameter.
 *
 * @param named.before what upstream has before its text
 * @throws ApiError 400 for a trait that does not exist
 */
export function traitIdsOf(
  { traits }: Pick<KnownNames, 'traits'>,
  { required, forbidden }: TraitFilter,
  { parameter, before = '' }: { readonly parameter: string; readonly before?: string },
): TraitIds {
  const idOf = (name: string): number => {
    const trait = traits.byName.get(name);
    if (trait !== undefined) return trait.id;
    throw unknownIn(parameter, unknownTraits([name], traits), before + noSuchTraits([name]));
  };
  return { required: required.map((anyOf) => anyOf.map(idOf)), forbidden: forbidden.map(idOf) };
}

/**
 * Checks that the classes and traits of all conditions exist, also of conditions that are not reached because other conditions
 * cannot be met.
 *
 * @throws ApiError 400 naming the parameter and the value
 */
export function requireKnownNames(fleet: Fleet, conditions: readonly Condition[]): void {
  for (const condition of conditions) {
    const problem = unknownName(fleet, condition);
    if (problem !== undefined) {
      throw badRequest(`Invalid query string parameters: ${condition.parameter}=${condition.value}: ${problem}`);
    }
  }
}

function unknownName({ classes, traits }: Fleet, condition: Condition): string | undefined {
  if (condition.kind === 'resource') {
    return classes.byName.has(condition.name) ? undefined : unknownClass(condition.name, classes);
  }
  const unknown = traitNamesOf(condition).filter((name) => !traits.byName.has(name));
  return unknown.length === 0 ? undefined : unknownTraits(unknown, traits);
}

function traitNamesOf(condition: Condition): readonly string[] {
  if (condition.kind === 'root') return [...condition.required, ...condition.forbidden];
  return condition.kind === 'trait' ? [...condition.traits.required.flat(), ...condition.traits.forbidden] : [];
}

/** The custom classes and the custom traits that a request names. */
export function customNamesOf({ groups, rootTraits, order }: CandidateRequest): {
  readonly classes: readonly string[];
  readonly traits: readonly string[];
} {
  const classes = groups.flatMap(({ resources }) => [...resources.keys()]);
  const traits = groups.flatMap(({ traits: { required, forbidden } }) => [...required.flat(), ...forbidden]);
  for (const key of order) {
    if (key.kind === 'free') classes.push(key.className);
    else if (key.kind === 'prefer') traits.push(key.traitName);
  }
  return {
    classes: classes.filter(isCustom),
    traits: [...traits, ...rootTraits.required, ...rootTraits.forbidden].filter(isCustom),
  };
}

/**
 * For how many groups a tree caches its options: enough for the groups of a few flavors. A request with more groups would
 * evict its own options.
 */
export const cachedGroups = 8;
