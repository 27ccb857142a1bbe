import { consumersSince } from './consumers.ts';
import { allOptional, filterParameters, optional, type ProviderFilter, type Resources } from './filters.ts';
import type { Inventory } from './inventories.ts';
import { type Ask, type CallOptions, listed } from './operation.ts';
import { allPages, type Page } from './pages.ts';

/** A provider with all its data. */
export type WholeProvider = {
  readonly uuid: string;
  readonly name: string;
  readonly generation: number;
  readonly parent_provider_uuid: string | null;
  readonly root_provider_uuid: string;
  readonly inventories: { readonly [resourceClass: string]: Inventory };
  readonly usages: Resources;
  readonly traits: readonly string[];
  readonly aggregates: readonly string[];
};

/** Which providers are listed. A provider must meet all these conditions. */
export type SummaryQuery = Omit<ProviderFilter, 'resources'> & {
  /** Only providers with these UUIDs. */
  readonly uuids?: readonly string[] | undefined;
};

/** Whole providers in bulk; from 2.2. */
export type ProviderSummaryCalls = {
  /** All providers in the order of their UUIDs, page by page. */
  list(query?: SummaryQuery, options?: CallOptions): AsyncGenerator<WholeProvider, void>;
  /** One page: at most `limit` providers (up to 10,000; default 1,000), after the UUID `marker`. */
  page(query?: SummaryQuery & Page, options?: CallOptions): Promise<readonly WholeProvider[]>;
};

const since = {
  resources: consumersSince,
  required: consumersSince,
  member_of: consumersSince,
  in_tree: consumersSince,
};

/** Makes the calls about whole providers. */
export function providerSummaryCalls(ask: Ask): ProviderSummaryCalls {
  const page: ProviderSummaryCalls['page'] = async (asked = {}, options) => {
    const { uuids, required, member_of, in_tree, limit, marker } = asked;
    if (uuids?.length === 0) return [];
    const query = [
      ...optional('uuid', uuids && `in:${uuids.join(',')}`),
      ...filterParameters({ required, member_of, in_tree }, since),
      ...allOptional({ limit, marker }),
    ];
    return listed(ask, 'provider_summaries', { since: consumersSince, query }, options);
  };
  return {
    page,
    list: (query = {}, options) => allPages((more) => page({ ...query, ...more }, options)),
  };
}
