import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { utcNow } from '../utc_now.ts';
import { isAsSeen, type SeenProvider } from './seen_provider.ts';

/** A node of the trees that a move was judged by. */
export type JudgedNode = { readonly id: number; readonly parentId: number | null };

/**
 * Puts a provider under another parent, or under none, names it, and gives its whole subtree the new root.
 *
 * The move was judged (no loop) by the shape of the trees it concerns. Their providers are locked first, in the order of
 * their ids, so that none gets a child or another parent; the next statement, which sees every child that came before the
 * lock, changes nothing where their shape is another one by now. The lock is one that lets others refer to the rows: a new
 * child elsewhere in the tree refers to the root.
 *
 * @returns whether it was done.
 * @throws a unique violation where the name is taken.
 */
export async function moveProvider(
  { transaction }: Pick<Database, 'transaction'>,
  move: {
    readonly id: number;
    readonly name: string;
    readonly parentId: number | null;
    readonly rootId: number;
    readonly subtreeIds: readonly number[];
    /** All providers of the old and the new tree. */
    readonly judged: readonly JudgedNode[];
    /** What the provider must still be, where that matters. */
    readonly seen?: SeenProvider | undefined;
  },
): Promise<boolean> {
  const ids = move.judged.map((node) => node.id);
  const lock = sql`select id from resource_providers where id = any(${ids}::integer[]) order by id for no key update`;
  const write = sql`
    with judged as (
      select * from unnest(${ids}::integer[], ${move.judged.map((node) => node.parentId)}::integer[]) as node (id, parent_id)
    ), present as (
      select id, parent_provider_id as parent_id from resource_providers
      where id = any(${ids}::integer[]) or parent_provider_id = any(${ids}::integer[])
    ), changed as (
      select from judged full join present using (id)
      where present.id is null or judged.id is null or judged.parent_id is distinct from present.parent_id
    )
    update resource_providers set
      name = case when id = ${move.id} then ${move.name}::text else name end,
      parent_provider_id = case when id = ${move.id} then ${move.parentId}::integer else parent_provider_id end,
      root_provider_id = ${move.rootId}::integer,
      updated_at = ${utcNow}
    where id = any(${move.subtreeIds}::integer[]) and not exists (select from changed)
      and exists (select from resource_providers p where p.id = ${move.id} and ${isAsSeen(move.seen)})
    returning id`;
  const [, rows] = await transaction([lock, write]);
  return rows.length > 0;
}
