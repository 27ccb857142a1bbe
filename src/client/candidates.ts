import type { Mappings } from './claim.ts';
import { filterParameters, optional, type ProviderFilter, type Resources } from './filters.ts';
import { type Microversion, type Since, versionNumber } from './microversions.ts';
import { type Ask, type CallOptions, type Parameter, pathOf } from './operation.ts';

/**
 * A query: resources and traits that any providers of a tree may have together, and groups that each need one provider.
 */
export type CandidateQuery = ProviderFilter & {
  /** By suffix: `1` (from 1.25), or any letters, digits, `-` and `_`, such as `_GPU` (from 1.33). */
  readonly groups?: { readonly [suffix: string]: ProviderFilter } | undefined;
  /** Whether groups may share a provider. Required if there is more than one group. From 1.25. */
  readonly group_policy?: 'none' | 'isolate' | undefined;
  /** The largest number of candidates in the answer. From 1.16. */
  readonly limit?: number | undefined;
  /** Traits of the root, `TRAIT` or `!TRAIT`. From 1.35. */
  readonly root_required?: readonly string[] | undefined;
  /** Suffixes of groups whose providers must lie below one of them. From 1.36. */
  readonly same_subtree?: readonly (readonly string[])[] | undefined;
  /**
   * In which order trees come, compared key by key: those with the least free of a class first (`free:VCPU`, fills one host after
   * the other), those with the most (`-free:VCPU`, spreads), those that have a trait (`prefer:HW_X`), or a random one. From 2.4.
   */
  readonly order?: readonly OrderKey[] | undefined;
  /** Consumers: only trees in which none of them holds anything. From 2.4. */
  readonly apart_from?: readonly string[] | undefined;
  /** Consumers: only trees in which one of them holds something. From 2.4. */
  readonly with?: readonly string[] | undefined;
};

/** A key by which trees are ordered. */
export type OrderKey = `free:${string}` | `-free:${string}` | `prefer:${string}` | 'random';

/** One way to serve the query. A claim can send it as its allocations. */
export type AllocationRequest<Version extends Microversion = Microversion> = {
  readonly allocations: { readonly [provider: string]: { readonly resources: Resources } };
} & Since<Version, '1.34', { readonly mappings: Mappings }>;

/** The capacity, usage and other properties of a provider that a candidate uses. */
export type ProviderSummary<Version extends Microversion = Microversion> = {
  readonly resources: { readonly [resourceClass: string]: { readonly capacity: number; readonly used: number } };
} & Since<Version, '1.17', { readonly traits: readonly string[] }> &
  Since<Version, '1.29', { readonly parent_provider_uuid: string | null; readonly root_provider_uuid: string }>;

/** The ways to serve the query, and the providers that they use. */
export type Candidates<Version extends Microversion = Microversion> = {
  readonly allocation_requests: readonly AllocationRequest<Version>[];
  readonly provider_summaries: { readonly [provider: string]: ProviderSummary<Version> };
};

/** Finds allocation candidates. From 1.10. */
export type CandidatesCall<Version extends Microversion> = (
  query: CandidateQuery,
  options?: CallOptions,
) => Promise<Candidates<Version>>;

const since = versionNumber('1.10');
const limitSince = versionNumber('1.16');
const filtersSince = {
  resources: since,
  required: versionNumber('1.17'),
  member_of: versionNumber('1.21'),
  in_tree: versionNumber('1.31'),
};
const groupsSince = versionNumber('1.25');
const namedGroupsSince = versionNumber('1.33');
const rootRequiredSince = versionNumber('1.35');
const sameSubtreeSince = versionNumber('1.36');
const treesSince = versionNumber('2.4');

/** Makes the call for allocation candidates. */
export const candidatesCall = <Version extends Microversion>(ask: Ask): CandidatesCall<Version> =>
  async function candidates(query, options) {
    const path = pathOf('allocation_candidates');
    const operation = { method: 'GET', path, since, query: candidateParameters(query) } as const;
    const body = await ask<WireCandidates<Version>>(operation, options);
    return { ...body, allocation_requests: body.allocation_requests.map(byProvider) };
  };

/** The parameters of a query. */
export function candidateParameters({ groups = {}, ...query }: CandidateQuery): readonly Parameter[] {
  const { group_policy, limit, root_required = [], same_subtree = [], order = [], apart_from = [] } = query;
  return [
    ...filterParameters(query, filtersSince),
    ...Object.entries(groups).flatMap(([suffix, filter]) => {
      const from = /^[1-9]\d*$/.test(suffix) ? groupsSince : namedGroupsSince;
      const versions = {
        resources: from,
        required: from,
        member_of: from,
        in_tree: Math.max(from, filtersSince.in_tree),
      };
      return filterParameters(filter, versions, suffix);
    }),
    ...optional('group_policy', group_policy, groupsSince),
    ...optional('limit', limit, limitSince),
    ...optional('root_required', root_required.join(',') || undefined, rootRequiredSince),
    ...same_subtree.map((suffixes) => ({ name: 'same_subtree', value: suffixes.join(','), since: sameSubtreeSince })),
    ...optional('order', order.join(',') || undefined, treesSince),
    ...optional('apart_from', apart_from.join(',') || undefined, treesSince),
    ...optional('with', query.with?.join(',') || undefined, treesSince),
  ];
}

type ListedRequest = {
  readonly allocations: readonly {
    readonly resource_provider: { readonly uuid: string };
    readonly resources: Resources;
  }[];
};

type WireCandidates<Version extends Microversion> = Omit<Candidates<Version>, 'allocation_requests'> & {
  readonly allocation_requests: readonly (AllocationRequest<Version> | ListedRequest)[];
};

/** Up to 1.11 the server sends allocations as a list. The client always returns them by provider. */
function byProvider<Version extends Microversion>(
  request: AllocationRequest<Version> | ListedRequest,
): AllocationRequest<Version> {
  if (!Array.isArray(request.allocations)) return request as AllocationRequest<Version>; // only the older form is a list
  const listed = request as ListedRequest; // it has a list, so it is the older form
  const allocations = listed.allocations.map(({ resource_provider, resources }) => [
    resource_provider.uuid,
    { resources },
  ]);
  return { allocations: Object.fromEntries(allocations) } as AllocationRequest<Version>; // without mappings, as before 1.34
}
