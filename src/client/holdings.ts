import type { NamedProvider } from './candidate_questions.ts';
import { namesSince } from './claim.ts';
import type { ConsumerOwner, ConsumerQuery } from './consumers.ts';
import { allOptional, type Resources } from './filters.ts';
import { type Ask, type CallOptions, listed } from './operation.ts';
import { allPages, type Page } from './pages.ts';

/** What a consumer holds of one provider. */
export type Holding = ConsumerOwner & {
  /** The UUID of the consumer. */
  readonly consumer: string;
  /** Null for a consumer without a name. */
  readonly name: string | null;
  readonly resource_provider: NamedProvider;
  /** The root of the tree of the provider. */
  readonly root: NamedProvider;
  readonly resources: Resources;
  /** Since when. */
  readonly since: string | null;
  /** When the term of the consumer expires; null without a term. */
  readonly expires_at: string | null;
};

/** Which holdings are listed. All these conditions must hold; conditions on a provider are about the provider of the allocations. */
export type HoldingQuery = Pick<
  ConsumerQuery,
  'project_id' | 'user_id' | 'consumer_type' | 'resource_provider' | 'in_tree' | 'name_contains'
> & {
  /** Only holdings of this class. */
  readonly resource_class?: string | undefined;
};

/** What consumers hold; from 2.9. */
export type HoldingCalls = {
  /** All holdings in the order of the UUIDs of the consumers, page by page. Each page is of one moment. */
  list(query?: HoldingQuery, options?: CallOptions): AsyncGenerator<Holding, void>;
  /** One page after the consumer with the UUID `marker`; it ends with the consumer with which it has `limit` rows (default 1000). */
  page(query?: HoldingQuery & Page, options?: CallOptions): Promise<readonly Holding[]>;
};

/** Makes the calls about holdings. */
export function holdingCalls(ask: Ask): HoldingCalls {
  const page: HoldingCalls['page'] = async (asked = {}, options) => {
    const { project_id, user_id, consumer_type, name_contains, resource_provider, in_tree, resource_class } = asked;
    const { limit, marker } = asked;
    const owner = { project_id, user_id, consumer_type, name_contains };
    const query = allOptional({ ...owner, resource_provider, in_tree, resource_class, limit, marker });
    return listed(ask, 'holdings', { since: namesSince, query }, options);
  };
  return { page, list: (query = {}, options) => allPages((more) => page({ ...query, ...more }, options)) };
}
