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
   * Ids: the consumers must have an allocation on a provider of each list. Without another condition the search reads no more
   * of the allocations on those of the first list than a page for each; else all, or for one provider until the page is full.
   */
  readonly providers: readonly (readonly number[])[];
  /** The consumers must have a term that ends before this time. */
  readonly expiringBefore: Date | undefined;
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
  const page =
    query.providers.length > 0
      ? onProviders(query, marker, length)
      : query.expiringBefore === undefined
        ? anywhere(query, marker, length)
        : withTerms(query, marker, length);
  const { rows } = await sql<ConsumerRow>`with ${page}
    ${selectConsumerRows(sql`page as c`)} order by c.uuid`.execute(kysely);
  return rows.slice(0, limit + 1);
}

const columns = sql`c.id, c.uuid, c.project_id, c.user_id, c.consumer_type_id, c.generation, c.created_at, c.updated_at, c.etag`;

/**
 * Finds records by the index of the requested project, user or type. Each index has the UUIDs in order. The condition and the order
 * are those of the whole index: with an equality the server may read the index of UUIDs and leave out what is of others, which
 * takes long where few are not.
 */
function anywhere(query: ConsumerQuery, marker: string, length: RawBuilder<unknown>): RawBuilder<unknown> {
  const owner = ownerConditions(query);
  const ofType = (type: Condition | undefined) => {
    const conditions = [...owner, ...(type === undefined ? [] : [type])];
    const keys = owner.length > 0 ? owner : conditions;
    const columnsOf = sql.join(keys.map(({ column }) => column));
    const values = sql.join(keys.map(({ value }) => value));
    const [after, order] =
      keys.length === 0
        ? [sql`c.uuid > ${marker}`, sql`c.uuid`]
        : [
            sql`(${columnsOf}, c.uuid) > (${values}, ${marker}::text) and (${columnsOf}) <= (${values})`,
            sql`${columnsOf}, c.uuid`,
          ];
    const others = conditions.filter((condition) => !keys.includes(condition)).map(equal);
    return sql`(
        select ${columns} from consumers c where ${sql.join([after, ...others], sql` and `)}
        order by ${order} limit ${length}
      )`;
  };
  const types = typeConditions(query);
  const recorded = types.length === 0 ? [ofType(undefined)] : types.map(ofType);
  return sql`recorded as materialized (
      select * from (${sql.join(recorded, sql` union all `)}) as found order by uuid limit ${length}
    ),
    page as materialized (
      select * from recorded ${mayBeIncomplete(query) ? incomplete(query, marker, length) : sql``}
      order by uuid limit ${length}
    )`;
}

/**
 * Old allocations without a record. They are searched up to the last UUID of the page of records, where that is full; there the
 * offset makes the server look up each consumer separately, since a plan for many values would read all consumers.
 * Else, with a filter, both tables are read side by side in the order of UUIDs after the marker, until the page is full.
 */
function incomplete(query: ConsumerQuery, marker: string, length: RawBuilder<unknown>): RawBuilder<unknown> {
  const last = sql`(select uuid from recorded order by uuid offset ${length} - 1)`;
  const search = (from: RawBuilder<unknown>) => sql`
      union all (
        select null, a.consumer_id, null, null, null, null, null, null, null from ${from} as a
        order by a.consumer_id limit ${length}
      )`;
  const lookedUp = (end: RawBuilder<unknown>) =>
    search(sql`(
          select consumer_id from (
            select distinct consumer_id from allocations where consumer_id > ${marker} and consumer_id <= ${end} offset 0
          ) as each where not exists (select from consumers c where c.uuid = each.consumer_id offset 0)
        )`);
  if (asksForAll(query)) return lookedUp(sql`coalesce(${last}, (select max(consumer_id) from allocations))`);
  const sideBySide = search(sql`(select where ${last} is null) as is_not_full cross join lateral (
          select distinct consumer_id from allocations
          where consumer_id > ${marker} and not exists (select from consumers c where c.uuid = consumer_id)
          order by consumer_id limit ${length}
        )`);
  return sql`${lookedUp(last)}${sideBySide}`;
}

const asksForAll = ({ projectId, userId, consumerType }: ConsumerQuery): boolean =>
  projectId === undefined && userId === undefined && consumerType === undefined;

/** Finds consumers by their terms. All terms that end before the time are read, and their records looked up one by one. */
function withTerms(query: ConsumerQuery, marker: string, length: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`page as materialized (
      select ${columns} from (select consumer_id as id from consumer_terms where expires_at < ${query.expiringBefore}::timestamptz) as t
      join lateral (select * from consumers where id = t.id offset 0) as c on true
      where ${matches(query)} and c.uuid > ${marker}
      order by c.uuid limit ${length}
    )`;
}

/** Finds consumers by the allocations on the providers. Their records are looked up one by one, until the page is full. */
function onProviders(query: ConsumerQuery, marker: string, length: RawBuilder<unknown>): RawBuilder<unknown> {
  const [first = [], ...others] = query.providers;
  const alsoHas = others.map(
    (ids) => sql`exists (
        select from allocations a where a.consumer_id = h.uuid and a.resource_provider_id = any(${ids}::integer[])
      )`,
  );
  return sql`page as materialized (
      select c.id, h.uuid, c.project_id, c.user_id, c.consumer_type_id, c.generation, c.created_at, c.updated_at, c.etag
      from (${heldOn(first, marker)}) as h
      left join lateral (select ${columns} from consumers c where c.uuid = h.uuid offset 0) as c on true
      where ${sql.join([matches(query), ...alsoHas], sql` and `)}
      order by h.uuid limit ${length}
    )`;
}

/** Consumers with allocations on some providers, in the order of their UUIDs. All allocations of the providers are read. */
function heldOn(ids: readonly number[], marker: string): RawBuilder<unknown> {
  return sql`select distinct a.consumer_id as uuid from allocations a
        where a.resource_provider_id = any(${ids}::integer[]) and a.consumer_id > ${marker} order by uuid offset 0`;
}

/** Whether a consumer, with a record or without one, is of the requested owner and type, and its term ends in time. */
function matches(query: ConsumerQuery): RawBuilder<unknown> {
  const types = typeConditions(query);
  const isOfType = types.length === 0 ? [] : [sql`(${sql.join(types.map(equal), sql` or `)})`];
  const conditions = [
    sql`c.id is not null`,
    ...ownerConditions(query).map(equal),
    ...isOfType,
    ...termConditions(query),
  ];
  const isAsked = sql.join(conditions, sql` and `);
  return sql`((${isAsked}) ${mayBeIncomplete(query) ? sql`or c.id is null` : sql``})`;
}

/** That a column of consumers has a value. */
type Condition = { readonly column: RawBuilder<unknown>; readonly value: RawBuilder<unknown> };

const equal = ({ column, value }: Condition): RawBuilder<unknown> => sql`${column} = ${value}`;

/**
 * A text for each kind of query: conditions that do not apply are left out, since otherwise one plan would have to
 * serve all kinds.
 */
const ownerConditions = ({ projectId, userId }: ConsumerQuery): Condition[] => [
  ...(projectId === undefined
    ? []
    : [{ column: sql`c.project_id`, value: sql`(select id from projects where external_id = ${projectId})` }]),
  ...(userId === undefined
    ? []
    : [{ column: sql`c.user_id`, value: sql`(select id from users where external_id = ${userId})` }]),
];

/** Alternative conditions, each with one value in the index of types (migration 008); none where any type matches. */
function typeConditions({ consumerType }: ConsumerQuery): Condition[] {
  if (consumerType === undefined) return [];
  const column = sql`coalesce(c.consumer_type_id, 0)`;
  const named = { column, value: sql`(select id from consumer_types where name = ${consumerType})` };
  // A consumer type may also have this name.
  return consumerType === 'unknown' ? [{ column, value: sql`0` }, named] : [named];
}

const termConditions = ({ expiringBefore }: ConsumerQuery): RawBuilder<unknown>[] =>
  expiringBefore === undefined
    ? []
    : [
        sql`exists (
          select from consumer_terms t
          where t.consumer_id = c.id and t.generation = c.generation and t.expires_at < ${expiringBefore}::timestamptz
        )`,
      ];

/** Whether old allocations without a record match the filter. They have no terms. */
const mayBeIncomplete = ({ projectId, userId, consumerType, expiringBefore, incomplete }: ConsumerQuery): boolean =>
  expiringBefore === undefined &&
  (projectId ?? incomplete.projectId) === incomplete.projectId &&
  (userId ?? incomplete.userId) === incomplete.userId &&
  (consumerType ?? 'unknown') === 'unknown';
