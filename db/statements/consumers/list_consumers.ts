import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { type ConsumerRow, selectConsumerRows } from './consumer_row.ts';

/** The filter of a list of consumers; all conditions must hold. */
export type ConsumerQuery = {
  readonly projectId: string | undefined;
  readonly userId: string | undefined;
  /** `unknown` selects consumers without a type. */
  readonly consumerType: string | undefined;
  /**
   * Ids: the consumers must have an allocation on a provider of each list. The search reads all allocations on those of
   * the first list.
   */
  readonly providers: readonly (readonly number[])[];
  /** The page begins after this UUID, which need not exist. */
  readonly marker: string | undefined;
  /** How many consumers the page may have. */
  readonly limit: number;
  /** The project and user that old allocations without a consumer record belong to. */
  readonly incomplete: { readonly projectId: string; readonly userId: string };
};

/**
 * The LIMITs of the statement. There are few, since every connection plans each text; rows beyond the page are dropped
 * afterwards.
 */
const lengths: readonly number[] = [10, 100, 1000];

/**
 * A page of consumers in the order of their UUIDs, both those with a record and those with old allocations only. One
 * statement reads both, so that a consumer that gets its record meanwhile is in the page once.
 *
 * @returns one consumer more than `limit`, if there are more
 */
export async function listConsumers({ kysely }: Database, query: ConsumerQuery): Promise<readonly ConsumerRow[]> {
  const { limit, marker = '' } = query;
  const length = sql.lit((lengths.find((each) => each >= limit) ?? limit) + 1);
  const page = query.providers.length === 0 ? anywhere(query, marker, length) : onProviders(query, marker, length);
  const { rows } = await sql<ConsumerRow>`with ${page}
    ${selectConsumerRows(sql`page as c`)} order by c.uuid`.execute(kysely);
  return rows.slice(0, limit + 1);
}

const columns = sql`c.id, c.uuid, c.project_id, c.user_id, c.consumer_type_id, c.generation, c.created_at, c.updated_at, c.etag`;

/** Finds records by the index of the requested project, user or type. Each index has the UUIDs in order. */
function anywhere(query: ConsumerQuery, marker: string, length: RawBuilder<unknown>): RawBuilder<unknown> {
  const owner = ownerConditions(query);
  const ofType = (condition: RawBuilder<unknown>) => sql`(
        select ${columns} from consumers c where ${sql.join([...owner, condition], sql` and `)} and c.uuid > ${marker}
        order by c.uuid limit ${length}
      )`;
  const recorded = typeConditions(query).map(ofType);
  return sql`recorded as materialized (
      select * from (${sql.join(recorded, sql` union all `)}) as found order by uuid limit ${length}
    ),
    page as materialized (
      select * from recorded ${mayBeIncomplete(query) ? incomplete(query, marker, length) : sql``}
      order by uuid limit ${length}
    )`;
}

/**
 * Without a filter, old allocations are searched up to the last UUID of the page of records. The offset makes the
 * server look up each consumer separately: a plan for many values would read all consumers. With a filter there may be
 * few records, so that the page spans many UUIDs. Then both tables are read side by side in the order of UUIDs after
 * the marker, until the page is full.
 */
const incomplete = (query: ConsumerQuery, marker: string, length: RawBuilder<unknown>): RawBuilder<unknown> => sql`
      union all (
        select null, a.consumer_id, null, null, null, null, null, null, null from allocations a
        where a.consumer_id > ${marker} and ${
          asksForAll(query)
            ? sql`a.consumer_id <= coalesce(
              (select uuid from recorded order by uuid offset ${length} - 1), (select max(consumer_id) from allocations))
            and not exists (select from consumers c where c.uuid = a.consumer_id offset 0)`
            : sql`not exists (select from consumers c where c.uuid = a.consumer_id)`
        }
        group by a.consumer_id order by a.consumer_id limit ${length}
      )`;

const asksForAll = ({ projectId, userId, consumerType }: ConsumerQuery): boolean =>
  projectId === undefined && userId === undefined && consumerType === undefined;

/**
 * Finds consumers by the allocations on the providers. Their records are looked up one by one, until the page is full.
 */
function onProviders(query: ConsumerQuery, marker: string, length: RawBuilder<unknown>): RawBuilder<unknown> {
  const [first = [], ...others] = query.providers;
  const types = sql`(${sql.join(typeConditions(query), sql` or `)})`;
  const isAsked = sql.join([...ownerConditions(query), types], sql` and `);
  const alsoHas = others.map(
    (ids) => sql`
        and exists (select from allocations a where a.consumer_id = h.uuid and a.resource_provider_id = any(${ids}::integer[]))`,
  );
  return sql`held as materialized (
      select distinct a.consumer_id as uuid from allocations a
      where a.resource_provider_id = any(${first}::integer[]) and a.consumer_id > ${marker}
    ),
    page as materialized (
      select c.id, h.uuid, c.project_id, c.user_id, c.consumer_type_id, c.generation, c.created_at, c.updated_at, c.etag
      from (select uuid from held order by uuid offset 0) as h
      left join lateral (select ${columns} from consumers c where c.uuid = h.uuid offset 0) as c on true
      where (c.id is not null and ${isAsked} ${mayBeIncomplete(query) ? sql`or c.id is null` : sql``}) ${sql.join(alsoHas, sql``)}
      order by h.uuid limit ${length}
    )`;
}

/**
 * A text for each kind of query: conditions that do not apply are left out, since otherwise one plan would have to
 * serve all kinds.
 */
const ownerConditions = ({ projectId, userId }: ConsumerQuery): RawBuilder<unknown>[] => [
  ...(projectId === undefined ? [] : [sql`c.project_id = (select id from projects where external_id = ${projectId})`]),
  ...(userId === undefined ? [] : [sql`c.user_id = (select id from users where external_id = ${userId})`]),
];

/** Alternative conditions, each with one value in the index of types (migration 008). */
function typeConditions({ consumerType }: ConsumerQuery): RawBuilder<unknown>[] {
  if (consumerType === undefined) return [sql`true`];
  const named = sql`coalesce(c.consumer_type_id, 0) = (select id from consumer_types where name = ${consumerType})`;
  // A consumer type may also have this name.
  return consumerType === 'unknown' ? [sql`coalesce(c.consumer_type_id, 0) = 0`, named] : [named];
}

/** Whether old allocations without a record match the filter. */
const mayBeIncomplete = ({ projectId, userId, consumerType, incomplete }: ConsumerQuery): boolean =>
  (projectId ?? incomplete.projectId) === incomplete.projectId &&
  (userId ?? incomplete.userId) === incomplete.userId &&
  (consumerType ?? 'unknown') === 'unknown';
