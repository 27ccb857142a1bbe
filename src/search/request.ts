import type { AggregateFilter, Resources, TraitFilter } from '../placement/filters.ts';
import type { Turns } from '../request/turns.ts';

/** One group of a candidates query: the resources and traits of one provider, or for the group without suffix of one tree. */
export type RequestGroup = {
  /** Empty for the group without suffix. All others are granular: satisfied by a single provider. */
  readonly suffix: string;
  /** Empty only in a group that `same_subtree` names. */
  readonly resources: Resources;
  readonly traits: TraitFilter;
  readonly aggregates: AggregateFilter;
  /** The UUID of any provider of the tree that the group is restricted to, in all spellings under which it is looked for. */
  readonly inTree: readonly string[] | undefined;
};

/** A query for allocation candidates. */
export type CandidateRequest = {
  /** In the order in which the query names them. */
  readonly groups: readonly RequestGroup[];
  /** At most this many candidates. */
  readonly limit: number | undefined;
  /** Whether granular groups must be satisfied by different providers. */
  readonly isolate: boolean;
  /** The traits that the root of the tree must have, and the traits that it must not have. */
  readonly rootTraits: { readonly required: readonly string[]; readonly forbidden: readonly string[] };
  /** Sets of suffixes: of the providers of their groups, one must be at or above all others. */
  readonly sameSubtrees: readonly ReadonlySet<string>[];
  /** False before microversion 1.29: no candidate takes from two providers of one tree. */
  readonly nested: boolean;
  /** The keys by which trees are ordered; empty where the configured strategy decides. */
  readonly order: readonly OrderKey[];
  /** UUIDs of consumers, as the client spells them: no such consumer may have allocations in the tree. */
  readonly apartFrom: readonly string[];
  /** UUIDs of consumers, as the client spells them: unless the list is empty, one such consumer must have allocations in the tree. */
  readonly with: readonly string[];
};

/** The fields of a request that does not choose among trees. */
export const anyTree = { order: [], apartFrom: [], with: [] } as const satisfies Partial<CandidateRequest>;

/** One key of `order`: keys are compared one after the other. */
export type OrderKey =
  /** The free amount of a resource class. */
  | { readonly kind: 'free'; readonly className: string; readonly mostFirst: boolean }
  /** Trees with a trait come first. */
  | { readonly kind: 'prefer'; readonly traitName: string }
  | { readonly kind: 'random' };

/**
 * The budget that a caller grants to searches at several anchors and for several requests: the number of steps that are
 * left. In a step one choice or provider is examined. It takes some 50 ns: 35 to 130 by the kind of query.
 */
export type Work = { steps: number };

/** The limits of a search: the budget of the caller, and the turns after which the search pauses. Without them the search is unlimited. */
export type Limits = { readonly work?: Work | undefined; readonly turns?: Turns | undefined };

/**
 * Takes steps from the budget, if there is one.
 *
 * @returns whether the budget is used up: then the search is incomplete
 */
export function overspends(work: Work | undefined, steps: number): boolean {
  if (work === undefined) return false;
  work.steps -= steps;
  return work.steps < 0;
}
