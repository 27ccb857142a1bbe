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

/**
 * What the consumers of a project, or of one of its users, use in total, by consumer type and resource class.
 *
 * @param query.consumerType a type; `all` puts all consumers in one group, `unknown` selects those without a type;
 *   absent groups by type
 * @param query.incomplete the project and user that old allocations without a consumer record belong to
 */
export async function readUsages(
  { kysely }: Database,
  query: {
    readonly projectId: string;
    readonly userId: string | undefined;
    readonly consumerType: string | undefined;
    readonly incomplete: { readonly projectId: string; readonly userId: string };
  },
): Promise<readonly UsageRow[]> {
  // A text for each kind of query. With conditions on parameters (`$1 is null or ...`) one plan served all kinds, and
  // started parallel workers for allocations that it then did not read: 6 ms for a project without allocations.
  const { projectId, userId, consumerType, incomplete } = query;
  const isAll = consumerType === 'all';
  const hasOld =
    projectId === incomplete.projectId &&
    (userId ?? incomplete.userId) === incomplete.userId &&
    (isAll || (consumerType ?? 'unknown') === 'unknown');
  // A consumer counts with its first allocation: to count the different consumers of all allocations takes a sort on disk.
  const { rows } = await sql<UsageRow>`
    with allocated as (
      select ${isAll ? sql`'all'` : sql`coalesce(ct.name, 'unknown')`} as type, a.resource_class_id, a.used, a.place
      from consumers c join users u on u.id = c.user_id left join consumer_types ct on ct.id = c.consumer_type_id
      cross join lateral (
        select resource_class_id, used, row_number() over () as place from allocations where consumer_id = c.uuid
      ) as a
      where c.project_id = (select id from projects where external_id = ${projectId})
        ${userId === undefined ? sql`` : sql`and u.external_id = ${userId}`} ${ofType(consumerType)}
      ${hasOld ? withoutConsumer(isAll ? 'all' : 'unknown') : sql``}
    ), used as (
      select type, resource_class_id, sum(used)::float8 as used,
        sum(count(*) filter (where place = 1)) over (partition by type) as consumers
      from allocated group by type, resource_class_id
    )
    select rc.name as class_name, used.used, type as consumer_type, consumers::integer as consumer_count
    from used join resource_classes rc on rc.id = used.resource_class_id order by type, rc.id`.execute(kysely);
  return rows;
}

/** Old allocations, which have no consumer record. */
const withoutConsumer = (type: string) => sql`
      union all
      select ${type}, resource_class_id, used, row_number() over (partition by consumer_id) from allocations a
      where not exists (select from consumers c where c.uuid = a.consumer_id)`;

/** A condition on the type of a consumer with a record. */
function ofType(consumerType: string | undefined): RawBuilder<unknown> {
  if (consumerType === undefined || consumerType === 'all') return sql``;
  // A consumer type may also have this name.
  if (consumerType === 'unknown') return sql`and (ct.name is null or ct.name = 'unknown')`;
  return sql`and ct.name = ${consumerType}`;
}
