import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import type { OwnedConsumer } from './consumers/consumer_row.ts';

/*
 * The records of the history of usages (migration 014), and their sums.
 */

/** A time for which a consumer held an amount of a class of a provider. */
export type UsageRecordRow = OwnedConsumer & {
  readonly id: number;
  readonly consumer: string;
  /** Null if the provider, or the class, was deleted before the record began. */
  readonly providerUuid: string | null;
  readonly providerName: string | null;
  readonly className: string | null;
  readonly amount: number;
  readonly began: Date;
  /** Null for an open record. */
  readonly until: Date | null;
  readonly ended: string | null;
  /** The end in microseconds since 1970, as a text of digits, for the position. */
  readonly untilMicros: string | null;
};

/** Which records count; all conditions must hold. */
export type UsageFilter = {
  readonly projectId: string | undefined;
  readonly userId: string | undefined;
  /** `unknown` selects consumers without a type. */
  readonly consumerType: string | undefined;
  /** Spellings of the UUID of one consumer, which need not exist any more; undefined for all. */
  readonly consumers: readonly string[] | undefined;
  /** The name of the consumer: an open record has the present one, a closed one that of its end. */
  readonly name: string | undefined;
  /** The UUIDs of the providers, which need not exist any more; undefined for all. */
  readonly providers: readonly string[] | undefined;
  /** The name of a class, which need not exist any more. */
  readonly className: string | undefined;
  /** Records of allocations that existed between these times. */
  readonly from: Date | undefined;
  readonly until: Date | undefined;
  /** The project and user that allocations without a consumer record belong to. */
  readonly incomplete: { readonly projectId: string; readonly userId: string };
};

/** The record after which a page begins: an open record, or a closed one. */
export type UsagePosition =
  | { readonly of: 'open'; readonly id: number; readonly consumer: string }
  | { readonly of: 'ended'; readonly id: number; readonly untilMicros: string };

/**
 * A page of open records, in the order of the consumers.
 *
 * @param after the record after which it begins; undefined for the first page
 */
export async function listOpenRecords(
  { kysely }: Pick<Database, 'kysely'>,
  filter: UsageFilter,
  after: Extract<UsagePosition, { readonly of: 'open' }> | undefined,
  limit: number,
): Promise<readonly UsageRecordRow[]> {
  const { consumer = '', id = 0 } = after ?? {};
  const behind = sql`o.consumer_id >= ${consumer}::text and (o.consumer_id > ${consumer}::text or o.id > ${id}::bigint)`;
  const { rows } = await sql<UsageRecordRow>`
    select ${columns}, ${switchedOffAt} as until, null as "untilMicros" from (
      select * from ${openRecords(filter, consumer)} where ${sql.join([behind, ...openConditions(filter)], sql` and `)}
      order by o.consumer_id, o.id limit ${limit}
    ) as u ${presentNames} order by u.consumer_id, u.id`.execute(kysely);
  return rows;
}

/**
 * A page of what was held, in the order of the ends.
 *
 * @param after the record after which it begins; undefined for the first page
 */
export async function listEndedRecords(
  { kysely }: Pick<Database, 'kysely'>,
  filter: UsageFilter,
  after: Extract<UsagePosition, { readonly of: 'ended' }> | undefined,
  limit: number,
): Promise<readonly UsageRecordRow[]> {
  const behind =
    after === undefined
      ? []
      : [
          sql`u.ended_at >= ${timeOf(after.untilMicros)} and (u.ended_at > ${timeOf(after.untilMicros)} or u.id > ${after.id}::bigint)`,
        ];
  const { rows } = await sql<UsageRecordRow>`
    select ${columns}, u.ended_at as until, (extract(epoch from u.ended_at) * 1000000)::bigint::text as "untilMicros" from (
      select * from usage_records u where ${sql.join([sql`true`, ...behind, ...endedConditions(filter)], sql` and `)}
      order by u.ended_at, u.id limit ${limit}
    ) as u ${namesAtEnd} order by u.ended_at, u.id`.execute(kysely);
  return rows;
}

/** When the history was switched off, while records are being closed; else null. */
const switchedOffAt = sql`(select until from usage_history)`;

const timeOf = (micros: string) => sql`(timestamptz 'epoch' + ${micros}::bigint * interval '1 microsecond')`;

const columns = sql`u.id::float8 as id, u.consumer_id as consumer, u.name,
      (select external_id from projects where id = u.project_id) as "projectId",
      (select external_id from users where id = u.user_id) as "userId",
      (select name from consumer_types where id = u.consumer_type_id) as "consumerType",
      n.provider_uuid as "providerUuid", n.provider_name as "providerName", n.class_name as "className",
      u.amount::float8 as amount, u.began_at as began, n.ended`;

/** Table `n`: what the provider and the class of an open record `u` are called now, or were when it began. */
const presentNames = sql`cross join lateral (
      select coalesce((select uuid from resource_providers where id = u.resource_provider_id), u.provider_uuid) as provider_uuid,
        coalesce((select name from resource_providers where id = u.resource_provider_id), u.provider_name) as provider_name,
        coalesce((select name from resource_classes where id = u.resource_class_id), u.class_name) as class_name, null as ended offset 0
    ) as n`;
/** The same for a closed record. */
const namesAtEnd = sql`cross join lateral (select u.provider_uuid, u.provider_name, u.class_name, u.ended offset 0) as n`;

/** Whether a record is of a consumer, its name and its owner. Without an owner it belongs to the configured one. */
function consumerConditions(
  table: RawBuilder<unknown>,
  { consumers, name, projectId, userId, consumerType, incomplete }: UsageFilter,
): RawBuilder<unknown>[] {
  const isOf = (column: RawBuilder<unknown>, id: RawBuilder<unknown>, orNone: boolean) =>
    orNone ? sql`(${column} = ${id} or ${column} is null)` : sql`${column} = ${id}`;
  return [
    ...(consumers === undefined ? [] : [sql`${table}.consumer_id = any(${consumers}::text[])`]),
    ...(name === undefined ? [] : [sql`${table}.name = ${name}`]),
    ...(projectId === undefined
      ? []
      : [isOf(sql`${table}.project_id`, idOfProject(projectId), projectId === incomplete.projectId)]),
    ...(userId === undefined
      ? []
      : [
          isOf(
            sql`${table}.user_id`,
            sql`(select id from users where external_id = ${userId})`,
            userId === incomplete.userId,
          ),
        ]),
    ...(consumerType === undefined
      ? []
      : [
          isOf(
            sql`${table}.consumer_type_id`,
            sql`(select id from consumer_types where name = ${consumerType})`,
            consumerType === 'unknown',
          ),
        ]),
  ];
}

const idOfProject = (projectId: string) => sql`(select id from projects where external_id = ${projectId})`;

const endedConditions = (filter: UsageFilter): RawBuilder<unknown>[] => [
  ...consumerConditions(sql`u`, filter),
  ...(filter.providers === undefined ? [] : [sql`u.provider_uuid = any(${filter.providers}::text[])`]),
  ...(filter.className === undefined ? [] : [sql`u.class_name = ${filter.className}`]),
  ...(filter.from === undefined ? [] : [sql`u.ended_at > ${filter.from}::timestamptz`]),
  ...(filter.until === undefined ? [] : [sql`u.began_at < ${filter.until}::timestamptz`]),
];

const idsOfProviders = (uuids: readonly string[]) =>
  sql`array(select id from resource_providers where uuid = any(${uuids}::text[]))`;

const openConditions = (filter: UsageFilter): RawBuilder<unknown>[] => [
  ...consumerConditions(sql`o`, filter),
  ...(filter.providers === undefined ? [] : [sql`o.resource_provider_id = any(${idsOfProviders(filter.providers)})`]),
  ...(filter.className === undefined
    ? []
    : [sql`o.resource_class_id = (select id from resource_classes where name = ${filter.className})`]),
  ...(filter.until === undefined ? [] : [sql`o.began_at < ${filter.until}::timestamptz`]),
];

/**
 * Table `o`: the open records of consumers that may meet the filter, from one consumer on. Present allocations are in `allocations` and
 * `consumers` as well: so the consumers are found by the allocations of the providers, by their name, or by the project.
 */
function openRecords(
  { consumers, name, projectId, providers, incomplete }: UsageFilter,
  consumer: string,
): RawBuilder<unknown> {
  const ofEach = (consumers: RawBuilder<unknown>) => sql`(
        select r.* from (${consumers}) as h (uuid) cross join lateral (select * from open_usage_records where consumer_id = h.uuid offset 0) as r
      ) as o`;
  if (consumers !== undefined) return ofEach(sql`select unnest(${consumers}::text[]) order by 1`);
  if (providers !== undefined) {
    return ofEach(sql`select distinct consumer_id from allocations
          where resource_provider_id = any(${idsOfProviders(providers)}) and consumer_id >= ${consumer}::text order by consumer_id offset 0`);
  }
  if (name !== undefined) {
    return ofEach(sql`select c.uuid from (select consumer_id from consumer_names where name = ${name} offset 0) as n
          cross join lateral (select uuid from consumers where id = n.consumer_id offset 0) as c
          where c.uuid >= ${consumer}::text order by c.uuid offset 0`);
  }
  if (projectId === undefined || projectId === incomplete.projectId) return sql`open_usage_records as o`;
  const id = idOfProject(projectId);
  return ofEach(sql`select uuid from consumers c
          where (c.project_id, c.uuid) >= (${id}, ${consumer}::text) and c.project_id <= ${id} order by c.project_id, c.uuid`);
}

/** The keys of the sums, in the order in which the sums are sorted. */
export const totalKeys = [
  'project_id',
  'user_id',
  'consumer_type',
  'resource_provider',
  'resource_class',
  'month',
  'day',
] as const;
/** A key of the sums. */
export type TotalKey = (typeof totalKeys)[number];

/** The sum of the amounts, each times the hours for which it was held. */
export type UsageTotalRow = Partial<Readonly<Record<TotalKey, string | null>>> & {
  readonly providerName?: string | null;
  readonly amountHours: number;
};

/**
 * Sums over the records that meet a filter, open ones included. Of each record the part between the times of the filter counts. All sums
 * are read in one snapshot. Days and months begin by UTC.
 *
 * @param by at least one key
 * @param limit how many sums to return at most
 */
export async function sumUsage(
  { kysely }: Pick<Database, 'kysely'>,
  filter: UsageFilter,
  by: readonly TotalKey[],
  limit: number,
): Promise<readonly UsageTotalRow[]> {
  const { incomplete } = filter;
  const parts = by.includes('day') ? 'day' : by.includes('month') ? 'month' : undefined;
  const named: Readonly<Record<TotalKey, RawBuilder<unknown>>> = {
    project_id: sql`coalesce((select external_id from projects where id = s.project_id), ${incomplete.projectId}::text)`,
    user_id: sql`coalesce((select external_id from users where id = s.user_id), ${incomplete.userId}::text)`,
    consumer_type: sql`coalesce((select name from consumer_types where id = s.consumer_type_id), 'unknown')`,
    resource_provider: sql`s.provider_uuid`,
    resource_class: sql`s.class_name`,
    month: sql`to_char(s.part, 'YYYY-MM')`,
    day: sql`to_char(s.part, 'YYYY-MM-DD')`,
  };
  // A month and a day are both made of it.
  const part = sql`part`;
  const columnOf: Readonly<Record<TotalKey, RawBuilder<unknown>>> = {
    project_id: sql`project_id`,
    user_id: sql`user_id`,
    consumer_type: sql`consumer_type_id`,
    resource_provider: sql`provider_uuid`,
    resource_class: sql`class_name`,
    month: part,
    day: part,
  };
  const grouped = sql.join([...new Set(by.map((key) => columnOf[key]))]);
  const keys = sql.join(by.map((key) => sql`${named[key]} as ${sql.ref(key)}`));
  const numbers = sql.join(by.map((_, index) => sql.lit(index + 1)));
  // Records keep the name that the provider had in their end, and all sums of a provider have the same.
  const oneName = sql`coalesce((select name from resource_providers where uuid = s.provider_uuid),
      max(max(s.provider_name)) over (partition by s.provider_uuid))`;
  const { rows } = await sql<UsageTotalRow>`
    with now as materialized (select least(clock_timestamp(), ${switchedOffAt}) as at),
    record as (
      select u.project_id, u.user_id, u.consumer_type_id, u.provider_uuid, u.provider_name, u.class_name, u.amount, u.began_at, u.ended_at
      from usage_records u where ${sql.join([sql`true`, ...endedConditions(filter)], sql` and `)}
      union all
      select u.project_id, u.user_id, u.consumer_type_id, n.provider_uuid, n.provider_name, n.class_name, u.amount, u.began_at, null
      from (select o.* from ${openRecords(filter, '')} where ${sql.join([sql`true`, ...openConditions(filter)], sql` and `)}) as u ${presentNames}
    ),
    clipped as (
      select record.*, greatest(began_at, ${filter.from ?? null}::timestamptz) as since,
        least(ended_at, ${filter.until ?? null}::timestamptz, case when ended_at is null then now.at end) as until from record cross join now
    ),
    piece as (
      select c.*, ${
        parts === undefined
          ? sql`null::timestamp as part, c.until - c.since as held from clipped c where c.until > c.since`
          : sql`part, least(c.until, (part + ${sql.lit(`1 ${parts}`)}::interval) at time zone 'UTC') - greatest(c.since, part at time zone 'UTC') as held
      from clipped c cross join lateral generate_series(
        date_trunc(${sql.lit(parts)}, c.since at time zone 'UTC'), c.until at time zone 'UTC', ${sql.lit(`1 ${parts}`)}::interval
      ) as part
      where c.until > c.since and c.until > part at time zone 'UTC'`
      }
    ),
    sums as (
      select ${grouped}, max(provider_name) as provider_name, sum(amount * extract(epoch from held)) as seconds from piece group by ${grouped}
    )
    select ${keys} ${by.includes('resource_provider') ? sql`, ${oneName} as "providerName"` : sql``},
      (sum(seconds) / 3600)::float8 as "amountHours"
    from sums s group by ${numbers} order by ${numbers} limit ${limit}`.execute(kysely);
  return rows;
}

/** Whether the history is on; `closing`: it was switched off, and not all records are closed yet. */
export type HistoryState = 'on' | 'closing' | 'off';

/** Reads the state of the history, which is the same for all processes of a database. */
export async function readHistoryState({ kysely }: Pick<Database, 'kysely'>): Promise<HistoryState> {
  const { rows } = await sql<{ readonly isOn: boolean }>`select until is null as "isOn" from usage_history`.execute(
    kysely,
  );
  if (rows.length === 0) return 'off';
  return rows.some(({ isOn }) => isOn) ? 'on' : 'closing';
}
