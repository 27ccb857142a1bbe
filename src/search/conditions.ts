import type { AggregateFilter, TraitFilter } from '../placement/filters.ts';
import { anyTree, type CandidateRequest } from './request.ts';

/** One condition of a query, which can be dropped from it. */
export type Condition = Wording & (OfGroup | OfRequest);

/** How the client wrote a condition. */
type Wording = {
  /** With its suffix, `required_COMPUTE`. */
  readonly parameter: string;
  /** The part of the parameter's value: `VCPU:8`, `!HW_X`, `in:A,B`. */
  readonly value: string;
};

/** A condition on one group. */
export type OfGroup = { readonly suffix: string } & (
  | { readonly kind: 'resource'; readonly name: string; readonly amount: number }
  | { readonly kind: 'trait'; readonly traits: TraitFilter }
  | { readonly kind: 'aggregate'; readonly aggregates: AggregateFilter }
  | { readonly kind: 'tree'; readonly uuids: readonly string[] }
);

/** A condition on the whole candidate. */
type OfRequest =
  | { readonly kind: 'root'; readonly required: readonly string[]; readonly forbidden: readonly string[] }
  | { readonly kind: 'isolate' }
  | { readonly kind: 'subtree'; readonly suffixes: ReadonlySet<string> };

/** An amount of a resource class. */
export type ResourceCondition = Extract<Condition, { kind: 'resource' }>;

/** The request that has only these conditions. A group without a condition is left out, also from `same_subtree`. */
export function requestWith(conditions: readonly Condition[]): CandidateRequest {
  const groups = new Map<string, GrowingGroup>();
  const groupOf = (suffix: string) => {
    const known = groups.get(suffix) ?? emptyGroup(suffix);
    groups.set(suffix, known);
    return known;
  };
  const rootTraits = { required: new Set<string>(), forbidden: new Set<string>() };
  for (const condition of conditions) {
    switch (condition.kind) {
      case 'resource':
        groupOf(condition.suffix).resources.set(condition.name, condition.amount);
        break;
      case 'trait':
        add(groupOf(condition.suffix).traits, condition.traits);
        break;
      case 'aggregate':
        add(groupOf(condition.suffix).aggregates, condition.aggregates);
        break;
      case 'tree':
        groupOf(condition.suffix).inTree = condition.uuids;
        break;
      case 'root':
        for (const name of condition.required) rootTraits.required.add(name);
        for (const name of condition.forbidden) rootTraits.forbidden.add(name);
        break;
      default:
    }
  }
  const sameSubtrees = conditions.flatMap((condition) =>
    condition.kind === 'subtree' ? [new Set([...condition.suffixes].filter((suffix) => groups.has(suffix)))] : [],
  );
  return {
    groups: Array.from(groups.values(), ({ suffix, resources, traits, aggregates, inTree }) => ({
      suffix,
      resources,
      traits: { required: traits.required, forbidden: [...traits.forbidden] },
      aggregates: { required: aggregates.required, forbidden: [...aggregates.forbidden] },
      inTree,
    })),
    limit: undefined,
    isolate: conditions.some(({ kind }) => kind === 'isolate'),
    rootTraits: { required: [...rootTraits.required], forbidden: [...rootTraits.forbidden] },
    sameSubtrees: sameSubtrees.filter(({ size }) => size > 0),
    nested: true,
    ...anyTree,
  };
}

type Filter = { readonly required: (readonly string[])[]; readonly forbidden: Set<string> };

/** A group to which conditions are added one by one. */
type GrowingGroup = {
  readonly suffix: string;
  readonly resources: Map<string, number>;
  readonly traits: Filter;
  readonly aggregates: Filter;
  inTree: readonly string[] | undefined;
};

const emptyGroup = (suffix: string): GrowingGroup => ({
  suffix,
  resources: new Map(),
  traits: { required: [], forbidden: new Set() },
  aggregates: { required: [], forbidden: new Set() },
  inTree: undefined,
});

/** Adds the traits of another filter. */
function add(filter: Filter, { required, forbidden }: TraitFilter): void {
  filter.required.push(...required);
  for (const name of forbidden) filter.forbidden.add(name);
}

/** The conditions without the dropped one. A group that loses its only class is dropped with all its conditions. */
export function conditionsWithout(conditions: readonly Condition[], dropped: Condition): readonly Condition[] {
  if (!losesItsGroup(conditions, dropped)) return conditions.filter((condition) => condition !== dropped);
  return conditions.filter((condition) => !('suffix' in condition) || condition.suffix !== dropped.suffix);
}

/** Whether a condition is the only class of its group. */
export const losesItsGroup = (conditions: readonly Condition[], dropped: Condition): dropped is ResourceCondition =>
  dropped.kind === 'resource' &&
  conditions.filter((condition) => condition.kind === 'resource' && condition.suffix === dropped.suffix).length === 1;
