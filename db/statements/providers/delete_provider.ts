import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { isOnRun } from '../../engine/server_state.ts';
import { providerTagsAreWritten } from '../entity_tags.ts';
import { lockChangedTrees } from '../relied_locks.ts';
import { isAsJudged, type JudgedRow } from './judged_provider.ts';

/**
 * Deletes a provider with its inventories, traits and aggregates, unless it has children or allocations.
 *
 * The first statement locks the row. The second one sees every claim that was committed before the lock; later claims
 * find no row, so their guard fails. The triggers delete the entity tags with the row, and do not compute tags for its
 * deleted parts before.
 *
 * Other providers may have this provider as their root without being below it: upstream can create a child while its
 * parent is moved. The foreign key would prevent the deletion. So their root is set to null, and the online data
 * migration finds the right one.
 *
 * @returns why it was not deleted, if so: `gone` if there was no such row; `changed` if the caller must judge and call
 *   again, because the row is not as it was judged, or because the root of other providers was just set to null.
 */
export async function deleteProvider(
  database: Pick<Database, 'write'>,
  judged: JudgedRow,
): Promise<'deleted' | 'gone' | 'changed' | 'has children' | 'in use'> {
  const { id, serverRun } = judged;
  const lock = sql`select id from resource_providers where id = ${id} for update`;
  const remove = sql<{ has_children: boolean; is_root: boolean; in_use: boolean; changed: boolean; gone: boolean }>`
    with kept as (
      select exists (select from resource_providers where parent_provider_id = ${id} and id <> ${id}) as has_children,
        exists (select from resource_providers where root_provider_id = ${id} and id <> ${id}) as is_root,
        exists (select from allocations where resource_provider_id = ${id}) as in_use,
        not ${isOnRun(serverRun)} or
          exists (select from resource_providers p where p.id = ${id} and not ${isAsJudged(judged)}) as changed
    ), free as (
      select ${id}::integer as id from kept, ${providerTagsAreWritten}
      where not has_children and not is_root and not in_use and not changed
    ), inventories_gone as (
      delete from inventories i using free where i.resource_provider_id = free.id
    ), aggregates_gone as (
      delete from resource_provider_aggregates a using free where a.resource_provider_id = free.id
    ), traits_gone as (
      delete from resource_provider_traits t using free where t.resource_provider_id = free.id
    ), provider_gone as (
      delete from resource_providers p using free where p.id = free.id returning p.id
    )
    select has_children, is_root, in_use, changed, exists (select from provider_gone) as gone from kept`;
  const lockTree = lockChangedTrees(sql`id = ${id}`);
  const [, , rows] = await database.write([lock, lockTree, remove]);
  const [found] = rows;
  if (found?.changed) return 'changed';
  if (found?.has_children) return 'has children';
  if (found?.in_use) return 'in use';
  if (found?.is_root) {
    await database.write([lock, lockTree, forgetRoot(judged)]);
    return 'changed';
  }
  return found?.gone ? 'deleted' : 'gone';
}

/**
 * Only if the provider has no children: then no provider is below it, and every other provider with this root has a
 * wrong one.
 */
const forgetRoot = ({ id, serverRun }: JudgedRow) => sql`
  update resource_providers set root_provider_id = null where root_provider_id = ${id} and id <> ${id} and ${isOnRun(serverRun)}
    and not exists (select from resource_providers c where c.parent_provider_id = ${id} and c.id <> ${id})`;
