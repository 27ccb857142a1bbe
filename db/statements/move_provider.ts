import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { utcNow } from '../utc_now.ts';

/** A node of the trees that a move was judged by. */
export type JudgedNode = { readonly id: number; readonly parentId: number | null };

/**
 * Puts a provider under another parent, or under none, names it, and gives its whole subtree the new root.
 *
 * The move was judged (no loop) by the shape of the trees it concerns; they are locked in the order of their ids, and the
 * statement changes nothing where their shape is another one by now.
 *
 * @returns whether it was done.
 * @throws a unique violation where the name is taken.
 */
export async function moveProvider(
  { kysely }: Database,
  move: {
    readonly id: number;
    readonly name: string;
    readonly parentId: number | null;
    readonly rootId: number;
    readonly subtreeIds: readonly number[];
    /** All providers of the old and the new tree. */
    readonly judged: readonly JudgedNode[];
  },
): Promise<boolean> {
  const { rows } = await sql<{ id: number }>`
    with judged as (
      select * from unnest(${move.judged.map((node) => node.id)}::integer[],
        ${move.judged.map((node) => node.parentId)}::integer[]) as node (id, parent_id)
    ), locked as (
      select id, parent_provider_id from resource_providers
      where id in (select id from judged) or parent_provider_id in (select id from judged) order by id for update
    ), changed as (
      select from judged full join locked using (id)
      where locked.id is null or judged.id is null or judged.parent_id is distinct from locked.parent_provider_id
    )
    update resource_providers set
      name = case when id = ${move.id} then ${move.name}::text else name end,
      parent_provider_id = case when id = ${move.id} then ${move.parentId}::integer else parent_provider_id end,
      root_provider_id = ${move.rootId}::integer,
      updated_at = ${utcNow}
    where id = any(${move.subtreeIds}::integer[]) and not exists (select from changed)
    returning id`.execute(kysely);
  return rows.length > 0;
}
