import { candidateParameters } from './candidates.ts';
import { allOptional } from './filters.ts';
import { versionNumber } from './microversions.ts';
import { type Ask, type CallOptions, pathOf } from './operation.ts';
import type { UnlimitedQuery } from './placing.ts';

/** A provider by UUID and name. */
export type NamedProvider = { readonly uuid: string; readonly name: string };

/** The effect of a condition of a query. Numbers that would take the server too much work are null. */
export type ExplainedCondition = {
  /** With its suffix, such as `required_GPU`. */
  readonly parameter: string;
  readonly value: string;
  /** Trees that fit a query of this condition only; null also for group_policy and same_subtree. */
  readonly alone: number | null;
  /** Trees that fit this condition and all before it. */
  readonly left: number | null;
  /** Trees that fit if this condition is dropped. */
  readonly without: number | null;
  /** Only for resources: the largest amount that fits somewhere with all other conditions. */
  readonly largest?: number | null;
};

/** A condition that a tree does not meet. */
export type UnmetCondition = {
  readonly parameter: string;
  readonly value: string;
  /** The nearest provider. */
  readonly resource_provider: NamedProvider;
  /** The requested amount. For conditions other than resources, this, `free` and `tree_free` are null. */
  readonly asked: number | null;
  readonly free: number | null;
  /** The free amount of all providers together that may serve the tree; if it is enough, split the query into groups. From 2.7. */
  readonly tree_free?: number | null;
  readonly reason:
    | 'capacity'
    | 'max_unit'
    | 'min_unit'
    | 'step_size'
    | 'absent'
    | 'trait'
    | 'aggregate'
    | 'tree'
    | 'together';
};

/** Why a query fits only where it fits. */
export type Explanation = {
  readonly trees: number;
  /** How many of the trees are one provider that shares, such as a pool of licences. From 2.7. */
  readonly pools?: number;
  readonly fitting: number | null;
  /** Whether all numbers are known. */
  readonly complete: boolean;
  readonly conditions: readonly ExplainedCondition[];
  /** Trees that do not fit, the nearest first. */
  readonly nearest: readonly { readonly root: NamedProvider; readonly unmet: readonly UnmetCondition[] }[];
};

/** How many consumers with the query fit at the same time. */
export type CandidateCount = {
  readonly count: number;
  /** true: the count is exact. false: more may fit. */
  readonly exact: boolean;
  /** The trees with the largest counts, each counted alone. */
  readonly trees: readonly (NamedProvider & { readonly count: number })[];
};

/** Questions about a query for candidates; from 2.3. */
export type CandidateQuestions = {
  /**
   * Explains why a query fits only in some trees, or in none.
   *
   * @param query.nearest how many of the nearest trees to return, up to 1,000, before 2.9 up to 100; default 5
   * @param query.tree any provider of a tree; the explanation is only about this tree
   */
  explain(
    query: UnlimitedQuery & { readonly nearest?: number | undefined; readonly tree?: string | undefined },
    options?: CallOptions,
  ): Promise<Explanation>;
  /**
   * Counts how many consumers fit at the same time.
   *
   * @param query.max the count stops at this number; default 100,000
   * @param query.top how many of the trees with the largest counts to return, up to 10,000, before 2.9 up to 100; default 10
   */
  count(
    query: UnlimitedQuery & { readonly max?: number | undefined; readonly top?: number | undefined },
    options?: CallOptions,
  ): Promise<CandidateCount>;
};

const since = versionNumber('2.3');

/** Makes the calls for questions about candidates. */
export function candidateQuestions(ask: Ask): CandidateQuestions {
  const answerTo = <Answer>(
    question: string,
    query: UnlimitedQuery,
    more: Readonly<Record<string, string | number | undefined>>,
    options: CallOptions | undefined,
  ) => {
    const path = pathOf('allocation_candidates', question);
    const parameters = [...candidateParameters(query), ...allOptional(more)];
    return ask<Answer>({ method: 'GET', path, since, query: parameters }, options);
  };
  return {
    explain: ({ nearest, tree, ...query }, options) => answerTo('explanation', query, { nearest, tree }, options),
    count: ({ max, top, ...query }, options) => answerTo('count', query, { max, top }, options),
  };
}
