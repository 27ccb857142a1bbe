import { type RawBuilder, sql } from 'kysely';

/** A provider of a tree by which a request was judged. */
export type JudgedNode = { readonly id: number; readonly uuid: string; readonly parentId: number | null };

/**
 * Parts of a WITH clause, of which the last, `changed`, has a row for each provider of some whole trees that has another parent than
 * the request was judged by, is gone or is new in them.
 *
 * @param nodes all providers of the trees
 */
export function changedNodes(nodes: readonly JudgedNode[]): RawBuilder<unknown> {
  const ids = nodes.map((node) => node.id);
  return sql`judged as (
      select * from unnest(${ids}::integer[], ${nodes.map((node) => node.uuid)}::text[],
        ${nodes.map((node) => node.parentId)}::integer[]) as node (id, uuid, parent_id)
    ), present as (
      select id, uuid::text, parent_provider_id as parent_id from resource_providers
      where id = any(${ids}::integer[]) or parent_provider_id = any(${ids}::integer[])
    ), changed as (
      select from judged full join present using (id, uuid)
      where present.id is null or judged.id is null or judged.parent_id is distinct from present.parent_id
    )`;
}
