import { namesSince, termsSince } from './claim.ts';
import { allOptional, optional } from './filters.ts';
import { versionNumber } from './microversions.ts';
import { type Ask, type CallOptions, isGuarded, listed, pathOf, type WriteOptions } from './operation.ts';
import { allPages, type Page } from './pages.ts';

/** The project, user and type of a consumer. */
export type ConsumerOwner = {
  readonly project_id: string;
  readonly user_id: string;
  /** `unknown` if the consumer has no type. */
  readonly consumer_type: string;
};

/** A consumer, which has allocations. */
export type Consumer = ConsumerOwner & {
  readonly uuid: string;
  /** Null for a consumer that an older release left without a record. */
  readonly consumer_generation: number | null;
  readonly created_at: string | null;
  readonly updated_at: string | null;
  /** The tag of its allocations, which also covers owner and type; null if it has none. */
  readonly etag: string | null;
  /** When its term expires; null for a consumer without a term. From 2.6. */
  readonly expires_at?: string | null;
  /** Null for a consumer without a name. From 2.9. */
  readonly name?: string | null;
};

/** Which consumers are listed. A consumer must meet all these conditions. */
export type ConsumerQuery = {
  readonly project_id?: string | undefined;
  readonly user_id?: string | undefined;
  /** A type, or `unknown` for consumers without a type. */
  readonly consumer_type?: string | undefined;
  /** Only consumers with allocations on this provider. */
  readonly resource_provider?: string | undefined;
  /** Only consumers with allocations on a provider in the tree of this one. */
  readonly in_tree?: string | undefined;
  /** Only consumers with a term that expires before this time, such as `2026-11-22T23:00:00Z`. From 2.6. */
  readonly expiring_before?: Date | string | undefined;
  /** Only consumers with this name. From 2.9. */
  readonly name?: string | undefined;
  /** Only consumers with this text in their name; the letters A to Z are the same as a to z. From 2.9. */
  readonly name_contains?: string | undefined;
};

/** The new owner and type of a consumer. If its generation has changed since it was read, the change is refused. */
export type ConsumerChange = ConsumerOwner & {
  readonly consumer_generation: number | null;
  /** Its new name; null removes the name, and without this field it stays. From 2.9. */
  readonly name?: string | null | undefined;
};

/**
 * The new term of a consumer. If the generation of the consumer has changed since the caller read it, the change is
 * refused.
 */
export type TermChange = {
  /** The number of seconds from now to the end; null for no end. */
  readonly expires_in: number | null;
  readonly consumer_generation: number | null;
};

/** The term of a consumer after the change. The generation of the consumer stays. */
export type Term = {
  readonly consumer_generation: number;
  /** By the clock of the server's database; null for a consumer that lasts. */
  readonly expires_at: string | null;
};

/** Consumers; from 2.2. */
export type ConsumerCalls = {
  /**
   * All consumers in the order of their UUIDs, page by page. A consumer that exists all the time is listed exactly once.
   */
  list(query?: ConsumerQuery, options?: CallOptions): AsyncGenerator<Consumer, void>;
  /** One page: at most `limit` consumers (default 1000), after the UUID `marker`. */
  page(query?: ConsumerQuery & Page, options?: CallOptions): Promise<readonly Consumer[]>;
  /** @throws ApiError 404 if there is no such consumer */
  show(uuid: string, options?: CallOptions): Promise<Consumer>;
  /** Changes the owner or type of a consumer. @throws ApiError 409 if it has changed since it was read */
  set(uuid: string, change: ConsumerChange, options?: WriteOptions): Promise<Consumer>;
  /**
   * Renews, sets or removes the term of a consumer; from 2.6. A term that was renewed does not expire before the time
   * that is returned.
   *
   * @throws ApiError 404 if the term has expired or there is no such consumer; 409 if it has changed since it was read
   */
  setTerm(uuid: string, change: TermChange, options?: WriteOptions): Promise<Term>;
};

/** The version that introduced consumers. */
export const consumersSince = versionNumber('2.2');
const root = pathOf('consumers');

/** Makes the calls about consumers. */
export function consumerCalls(ask: Ask): ConsumerCalls {
  const page: ConsumerCalls['page'] = async (asked = {}, options) => {
    const { project_id, user_id, consumer_type, resource_provider, in_tree, limit, marker } = asked;
    const { expiring_before, name, name_contains } = asked;
    const before = expiring_before instanceof Date ? expiring_before.toISOString() : expiring_before;
    const query = [
      ...allOptional({ project_id, user_id, consumer_type, resource_provider, in_tree, limit, marker }),
      ...optional('expiring_before', before, termsSince),
      ...optional('name', name, namesSince),
      ...optional('name_contains', name_contains, namesSince),
    ];
    return listed(ask, 'consumers', { since: consumersSince, query }, options);
  };
  return {
    page,
    list: (query = {}, options) => allPages((more) => page({ ...query, ...more }, options)),
    show: (uuid, options) => ask({ method: 'GET', path: root + pathOf(uuid), since: consumersSince }, options),
    set: (uuid, { project_id, user_id, consumer_type, consumer_generation, name }, options) =>
      ask(
        {
          method: 'PUT',
          path: root + pathOf(uuid),
          since: name === undefined ? consumersSince : namesSince,
          body: () => ({ project_id, user_id, consumer_type, consumer_generation, name }),
          repeatable: isGuarded,
        },
        options,
      ),
    setTerm: (uuid, { expires_in, consumer_generation }, options) =>
      ask(
        {
          method: 'PUT',
          path: `${root}${pathOf(uuid, 'term')}`,
          since: termsSince,
          body: () => ({ expires_in, consumer_generation }),
          repeatable: isGuarded,
        },
        options,
      ),
  };
}
