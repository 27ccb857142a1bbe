import type { AggregateFilter, Resources, TraitFilter } from '../rest/query_values.ts';

/** One group of a candidates query: what one provider, or for the group without suffix one tree, must offer. */
export type RequestGroup = {
  /** Empty for the group without suffix. All others are granular: satisfied by a single provider. */
  readonly suffix: string;
  /** Empty only in a group that `same_subtree` names. */
  readonly resources: Resources;
  readonly traits: TraitFilter;
  readonly aggregates: AggregateFilter;
  /** The UUID of any provider of the tree that the group is restricted to. */
  readonly inTree: string | undefined;
};

/** A query for allocation candidates. */
export type CandidateRequest = {
  /** In the order in which the query names them. */
  readonly groups: readonly RequestGroup[];
  /** At most this many candidates. */
  readonly limit: number | undefined;
  /** Whether granular groups must be satisfied by different providers. */
  readonly isolate: boolean;
  /** The traits that the root of the tree must have, and those that it must not have. */
  readonly rootTraits: { readonly required: readonly string[]; readonly forbidden: readonly string[] };
  /** Sets of suffixes: of the providers of their groups, one must be at or above all others. */
  readonly sameSubtrees: readonly ReadonlySet<string>[];
  /** False before microversion 1.29: no candidate takes from two providers of one tree. */
  readonly nested: boolean;
};
