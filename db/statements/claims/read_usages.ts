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
  const isIncomplete = projectId === incomplete.projectId && (userId ?? incomplete.userId) === incomplete.userId;
  const { rows } = await sql<UsageRow>`
    with used as (
      select a.resource_class_id, a.used, a.consumer_id, ct.name as type
      from projects p
      join consumers c on c.project_id = p.id
      join users u on u.id = c.user_id
      join allocations a on a.consumer_id = c.uuid
      left join consumer_types ct on ct.id = c.consumer_type_id
      where p.external_id = ${projectId} ${userId === undefined ? sql`` : sql`and u.external_id = ${userId}`}
      ${isIncomplete ? withoutConsumer : sql``}
    ), grouped as (
      select resource_class_id, used, consumer_id,
        ${consumerType === 'all' ? sql`'all'` : sql`coalesce(type, 'unknown')`} as type
      from used ${ofType(consumerType)}
    ), counted as (
      select type, count(distinct consumer_id)::integer as consumers from grouped group by type
    )
    select rc.name as class_name, sum(g.used)::float8 as used, g.type as consumer_type,
      max(counted.consumers) as consumer_count
    from grouped g join counted using (type) join resource_classes rc on rc.id = g.resource_class_id
    group by g.type, rc.id order by g.type, rc.id`.execute(kysely);
  return rows;
}

/** Old allocations, which have no consumer record. */
const withoutConsumer = sql`
      union all
      select a.resource_class_id, a.used, a.consumer_id, null
      from allocations a
      where not exists (select from consumers c where c.uuid = a.consumer_id)`;

function ofType(consumerType: string | undefined): RawBuilder<unknown> {
  if (consumerType === undefined || consumerType === 'all') return sql``;
  // A consumer type may also have this name.
  if (consumerType === 'unknown') return sql`where type is null or type = 'unknown'`;
  return sql`where type = ${consumerType}`;
}
