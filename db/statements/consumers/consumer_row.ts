import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';

/**
 * How many generations the former consumers with a UUID had; 0 if there was none. It is looked up for each row: with a
 * join, a plan from a time with few former consumers would read all of them.
 *
 * @param uuid of the consumer
 */
export const formerGenerations = (uuid: RawBuilder<unknown>): RawBuilder<number> =>
  sql<number>`coalesce((select generations from former_consumers where uuid = ${uuid}), 0)::float8`;

/**
 * A condition of a deletion of records that no other transaction has seen, because the same transaction has made them: they
 * leave no former consumers.
 */
export const leavesNoFormer = sql<boolean>`(select set_config('placement.former_consumers', 'none', true)) is not null`;

/** What a consumer is called, and whose it is. */
export type OwnedConsumer = {
  /** Null if it has none. */
  readonly name: string | null;
  /** Null if there is no consumer record, or the owner in it does not exist. */
  readonly projectId: string | null;
  readonly userId: string | null;
  /** Null if the consumer has no type. */
  readonly consumerType: string | null;
};

/** A consumer: its record, or for an old consumer without one, what is known from its allocations. */
export type ConsumerRow = OwnedConsumer & {
  readonly uuid: string;
  /** The id of the record; null if there is none. Then generation and times are null as well. */
  readonly id: number | null;
  readonly generation: number | null;
  /** How many generations the former consumers with this UUID had. */
  readonly formerGenerations: number;
  readonly created: Date | null;
  readonly updated: Date | null;
  /** When its term expires; null without a term. */
  readonly expires: Date | null;
  /** Whether the term has expired: the consumer is removed soon. */
  readonly hasEnded: boolean;
  /**
   * The stored entity tag, which triggers update for all writes; null for old rows, and for consumers without
   * allocations.
   */
  readonly etag: string | null;
  /** If no tag is stored: the allocations in the order in which they were written. Null if there are none. */
  readonly allocations: readonly (readonly [providerUuid: string, className: string, used: number])[] | null;
};

/**
 * Selects from a table `c` with the columns of `consumers`, in which all but the UUID may be null. Referenced rows are
 * looked up separately for each row, so that no plan reads a whole table of projects or users for a page.
 */
export const selectConsumerRows = (from: RawBuilder<unknown>): RawBuilder<ConsumerRow> => sql<ConsumerRow>`
    select c.uuid, c.id, c.generation, ${formerGenerations(sql`c.uuid`)} as "formerGenerations", c.created_at as created, c.updated_at as updated, c.etag,
      t.expires_at as expires, coalesce(t.expires_at <= clock_timestamp(), false) as "hasEnded",
      (select name from consumer_names where consumer_id = c.id) as name,
      (select external_id from projects where id = c.project_id) as "projectId",
      (select external_id from users where id = c.user_id) as "userId",
      (select name from consumer_types where id = c.consumer_type_id) as "consumerType",
      case when c.etag is null then (
        select json_agg(json_build_array(p.uuid, k.name, a.used) order by a.id) from allocations a
        join resource_providers p on p.id = a.resource_provider_id join resource_classes k on k.id = a.resource_class_id
        where a.consumer_id = c.uuid
      ) end as allocations
    from ${from} left join lateral (
      select expires_at from consumer_terms where consumer_id = c.id and generation = c.generation offset 0
    ) as t on true`;

/** One consumer, with a record or with old allocations only; undefined if there is neither. */
export async function readConsumer({ kysely }: Database, uuid: string): Promise<ConsumerRow | undefined> {
  const one = sql`(
      select w.uuid, r.id, r.project_id, r.user_id, r.consumer_type_id, r.generation, r.created_at, r.updated_at, r.etag
      from (select ${uuid}::text as uuid) as w left join consumers r on r.uuid = w.uuid
      where r.id is not null or exists (select from allocations a where a.consumer_id = w.uuid)
    ) as c`;
  const { rows } = await selectConsumerRows(one).execute(kysely);
  return rows[0];
}
