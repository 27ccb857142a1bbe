import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';

/** The usage of a resource class by a group of consumers. */
export type UsageRow = {
  readonly class_name: string;
  readonly used: number;
  /** The consumer type of the group; `all` if types are not separated, `unknown` for consumers without a type. */
  readonly consumer_type: string;
  /** How many consumers the whole group has. */
  readonly consumer_count: number;
};

/** The requested owner. */
export type UsageQuery = {
  readonly projectId: string;
  readonly userId: string | undefined;
  /** A type; `all` puts all consumers in one group, `unknown` selects consumers without a type; absent groups by type. */
  readonly consumerType: string | undefined;
  /** The project and user that old allocations without a consumer record belong to. */
  readonly incomplete: { readonly projectId: string; readonly userId: string };
};

/**
 * How many consumers are looked up one by one. Beyond that, one pass over all allocations may be faster: it takes 0.1 s for each
 * 250,000 of them, and 10,000 look-ups take 0.1 s.
 */
const fewConsumers = 10_000;

/**
 * What the consumers of a project, or of one of its users, use in total, by consumer type and resource class.
 *
 * @param few up to how many consumers are looked up one by one; a test may pass fewer
 */
export async function readUsages(
  database: Pick<Database, 'kysely' | 'transaction'>,
  query: UsageQuery,
  few = fewConsumers,
): Promise<readonly UsageRow[]> {
  const { rows } = await usagesOfFew(query, few).execute(database.kysely);
  const [first] = rows;
  if (first === undefined || first.many_of === null) return rows.filter(isUsage);
  const readMany = usagesOfMany(query, { projectId: first.many_of, userId: first.many_of_user });
  return (await database.transaction([...forMany, readMany])).at(-1) as readonly UsageRow[]; // the rows of readMany
}

/** A usage; or, if there are too many consumers to look them up, the numbers of their project and user, and nothing else. */
type RowOfFew = (UsageRow & { readonly many_of: null }) | { readonly many_of: number; readonly many_of_user: number };

const isUsage = (row: RowOfFew): row is UsageRow & { readonly many_of: null } => row.many_of === null;

/**
 * Finds the allocations of each consumer by an index.
 *
 * A text for each kind of query. With conditions on parameters (`$1 is null or ...`) one plan served all kinds, and started parallel
 * workers for allocations that it then did not read: 6 ms for a project without allocations.
 */
function usagesOfFew(query: UsageQuery, few: number): RawBuilder<RowOfFew> {
  const { projectId, userId } = query;
  // A consumer counts with its first allocation.
  return sql<RowOfFew>`
    with chosen as materialized (
      select c.uuid, c.project_id, c.user_id, c.consumer_type_id from consumers c ${typesFor(query)}
      where c.project_id = (select id from projects where external_id = ${projectId})
        ${userId === undefined ? sql`` : sql`and c.user_id = (select id from users where external_id = ${userId})`}
        ${ofType(query)}
      limit ${sql.lit(few + 1)}
    ), parts as (
      select consumer_type_id, resource_class_id, used, (index = 1)::integer as consumers from chosen
      cross join lateral (
        select resource_class_id, used, row_number() over () as index from allocations where consumer_id = uuid
      ) as a
      where (select count(*) from chosen) <= ${sql.lit(few)}
      ${hasOld(query) ? sql`union all ${withoutConsumer} and (select count(*) from chosen) <= ${sql.lit(few)}` : sql``}
    ), ${usedIn(query)}
    select rc.name as class_name, used, type as consumer_type, consumers as consumer_count,
      null::integer as many_of, null::integer as many_of_user, rc.id as class_id
    from used join resource_classes rc on rc.id = resource_class_id
    union all
    (select null, null, null, null, project_id, user_id, null from chosen
     where (select count(*) from chosen) > ${sql.lit(few)} limit 1)
    order by consumer_type, class_id`;
}

/**
 * The settings for `usagesOfMany`. The plan is made for the project, by how many consumers it has. The consumers fit into memory: 300,000
 * of them take 27 MB. To compile the expressions takes longer than to evaluate them.
 */
const forMany = [
  sql`set local plan_cache_mode = force_custom_plan`,
  sql`set local work_mem = '64MB'`,
  sql`set local jit = off`,
];

/**
 * Joins all allocations with the consumers. To count the different consumers of the allocations would take a sort on disk: instead, those
 * without allocations are subtracted.
 */
function usagesOfMany(
  query: UsageQuery,
  { projectId, userId }: { readonly projectId: number; readonly userId: number },
): RawBuilder<UsageRow> {
  const isAll = query.consumerType === 'all';
  const type = isAll ? sql`null::integer as consumer_type_id` : sql`consumer_type_id`;
  const typeAnd = isAll ? sql`` : sql`consumer_type_id,`;
  const matching = sql`c.project_id = ${projectId}
    ${query.userId === undefined ? sql`` : sql`and c.user_id = ${userId}`} ${ofType(query)}`;
  return sql<UsageRow>`
    with joined as (
      select ${type}, resource_class_id, sum(used) as used, count(*) as places
      from consumers c ${typesFor(query)} left join allocations a on a.consumer_id = c.uuid
      where ${matching} group by ${typeAnd} resource_class_id
    ), parts as (
      select consumer_type_id, resource_class_id, used, case when resource_class_id is null then -places end as consumers from joined
      union all
      select ${type}, null, null, count(*) from consumers c ${typesFor(query)} where ${matching} ${isAll ? sql`` : sql`group by consumer_type_id`}
      ${hasOld(query) ? sql`union all ${withoutConsumer}` : sql``}
    ), ${usedIn(query)}
    select rc.name as class_name, used, type as consumer_type, consumers as consumer_count
    from used join resource_classes rc on rc.id = resource_class_id order by consumer_type, rc.id`;
}

/** Sums of `parts` by type and class, with the number of consumers of the type. */
function usedIn({ consumerType }: UsageQuery): RawBuilder<unknown> {
  const isAll = consumerType === 'all';
  return sql`used as (
      select type, resource_class_id, sum(used)::float8 as used,
        (sum(sum(consumers)) over (partition by type))::integer as consumers
      from ${
        isAll
          ? sql`(select 'all' as type, * from parts) as typed`
          : sql`(select coalesce(ct.name, 'unknown') as type, parts.*
          from parts left join consumer_types ct on ct.id = consumer_type_id) as typed`
      } group by type, resource_class_id
    )`;
}

/** Old allocations, which have no consumer record. */
const withoutConsumer = sql`
      select null::integer, resource_class_id, used, (row_number() over (partition by consumer_id) = 1)::integer from allocations a
      where not exists (select from consumers c where c.uuid = a.consumer_id)`;

/** Whether old allocations without a consumer record belong to the requested owner. */
const hasOld = ({ projectId, userId, consumerType, incomplete }: UsageQuery): boolean =>
  projectId === incomplete.projectId &&
  (userId ?? incomplete.userId) === incomplete.userId &&
  ['all', 'unknown', undefined].includes(consumerType);

/** The types of the consumers, where a type is requested. */
const typesFor = ({ consumerType }: UsageQuery): RawBuilder<unknown> =>
  consumerType === undefined || consumerType === 'all'
    ? sql``
    : sql`left join consumer_types ct on ct.id = c.consumer_type_id`;

/** A condition on the type of a consumer with a record. */
function ofType({ consumerType }: UsageQuery): RawBuilder<unknown> {
  if (consumerType === undefined || consumerType === 'all') return sql``;
  // A consumer type may also have this name.
  if (consumerType === 'unknown') return sql`and (ct.name is null or ct.name = 'unknown')`;
  return sql`and ct.name = ${consumerType}`;
}
