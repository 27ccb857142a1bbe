import type { Mappings } from './claim.ts';
import { filterParameters, optional, type ProviderFilter, type Resources } from './filters.ts';
import type { Microversion, Since } from './microversions.ts';
import { answered, type Call, type CallOptions, type Parameter, pathOf } from './operation.ts';

/** What is looked for: resources and traits that any provider of a tree may have, and groups that one provider must have each. */
export type CandidateQuery = ProviderFilter & {
  /** By suffix: `1` (from 1.25), or any letters, digits, `-` and `_`, such as `_GPU` (from 1.33). */
  readonly groups?: { readonly [suffix: string]: ProviderFilter } | undefined;
  /** Whether groups may share a provider; must be said where there is more than one. From 1.25. */
  readonly group_policy?: 'none' | 'isolate' | undefined;
  /** How many will do. From 1.16. */
  readonly limit?: number | undefined;
  /** Traits of the root, `TRAIT` or `!TRAIT`. From 1.35. */
  readonly root_required?: readonly string[] | undefined;
  /** Suffixes of groups whose providers must lie below one of them. From 1.36. */
  readonly same_subtree?: readonly (readonly string[])[] | undefined;
};

/** One way to get what was looked for: what a claim takes over. */
export type AllocationRequest<Version extends Microversion = Microversion> = {
  readonly allocations: { readonly [provider: string]: { readonly resources: Resources } };
} & Since<Version, '1.34', { readonly mappings: Mappings }>;

/** What a provider of a candidate has, all in all. */
export type ProviderSummary<Version extends Microversion = Microversion> = {
  readonly resources: { readonly [resourceClass: string]: { readonly capacity: number; readonly used: number } };
} & Since<Version, '1.17', { readonly traits: readonly string[] }> &
  Since<Version, '1.29', { readonly parent_provider_uuid: string | null; readonly root_provider_uuid: string }>;

/** The ways to get what was looked for, and the providers that they are about. */
export type Candidates<Version extends Microversion = Microversion> = {
  readonly allocation_requests: readonly AllocationRequest<Version>[];
  readonly provider_summaries: { readonly [provider: string]: ProviderSummary<Version> };
};

/** Asks where something fits; from 1.10. */
export type CandidatesCall<Version extends Microversion> = (
  query: CandidateQuery,
  options?: CallOptions,
) => Promise<Candidates<Version>>;

const since = 10;
const limitSince = 16;
const filtersSince = { resources: since, required: 17, member_of: 21, in_tree: 31 };
const groupsSince = 25;
const namedGroupsSince = 33;
const rootRequiredSince = 35;
const sameSubtreeSince = 36;

/** Makes the call for allocation candidates. */
export const candidatesCall = <Version extends Microversion>(call: Call): CandidatesCall<Version> =>
  async function candidates(query, options) {
    const path = pathOf('allocation_candidates');
    const reply = await call({ method: 'GET', path, since, query: parameters(query) }, options);
    const body = await answered<WireCandidates<Version>>(Promise.resolve(reply));
    return { ...body, allocation_requests: body.allocation_requests.map(byProvider) };
  };

function parameters({ groups = {}, ...query }: CandidateQuery): readonly Parameter[] {
  const { group_policy, limit, root_required = [], same_subtree = [] } = query;
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

/** Up to 1.11 allocations were a list; clients of any version see them by provider. */
function byProvider<Version extends Microversion>(
  request: AllocationRequest<Version> | ListedRequest,
): AllocationRequest<Version> {
  if (!Array.isArray(request.allocations)) return request as AllocationRequest<Version>; // the other one has a list
  const listed = request as ListedRequest; // by its list
  const allocations = listed.allocations.map(({ resource_provider, resources }) => [
    resource_provider.uuid,
    { resources },
  ]);
  return { allocations: Object.fromEntries(allocations) } as AllocationRequest<Version>; // without mappings, as before 1.34
}
