import { sql } from 'kysely';
import type { Database } from '../connect.ts';

/** What is used of a class, in a group of consumers. */
export type UsageRow = {
  readonly class_name: string;
  readonly used: number;
  /** The consumer type that the usage is grouped under: `all` or `unknown` where that was asked for, or none is known. */
  readonly consumer_type: string;
  /** How many consumers the whole group has. */
  readonly consumer_count: number;
};

/**
 * What the consumers of a project, or of one of its users, use in total, by consumer type and resource class.
 *
 * @param consumerType a type; `all` groups all together, `unknown` takes those without a type; absent groups by type
 * @param incomplete whom old allocations without a consumer record belong to
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
  const { projectId, userId = null, consumerType = null, incomplete } = query;
  const { rows } = await sql<UsageRow>`
    with used as (
      select a.resource_class_id, a.used, a.consumer_id, ct.name as type
      from projects p
      join consumers c on c.project_id = p.id
      join users u on u.id = c.user_id
      join allocations a on a.consumer_id = c.uuid
      left join consumer_types ct on ct.id = c.consumer_type_id
      where p.external_id = ${projectId} and (${userId}::text is null or u.external_id = ${userId})
      union all
      select a.resource_class_id, a.used, a.consumer_id, null
      from allocations a
      where ${projectId} = ${incomplete.projectId} and (${userId}::text is null or ${userId} = ${incomplete.userId})
        and not exists (select from consumers c where c.uuid = a.consumer_id)
    ), grouped as (
      select resource_class_id, used, consumer_id,
        case when ${consumerType}::text = 'all' then 'all' else coalesce(type, 'unknown') end as type
      from used
      where ${consumerType}::text is null or ${consumerType} = 'all' or (${consumerType} = 'unknown' and type is null)
        or type = ${consumerType}
    ), counted as (
      select type, count(distinct consumer_id)::integer as consumers from grouped group by type
    )
    select rc.name as class_name, sum(g.used)::float8 as used, g.type as consumer_type,
      max(counted.consumers) as consumer_count
    from grouped g join counted using (type) join resource_classes rc on rc.id = g.resource_class_id
    group by g.type, rc.id order by g.type, rc.id`.execute(kysely);
  return rows;
}
