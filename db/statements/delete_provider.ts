import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { isAsSeen, type SeenProvider } from './seen_provider.ts';
import { providerTagsAreWritten } from './written_tags.ts';

/**
 * Deletes a provider with its inventories, traits and aggregates, unless it has children or allocations.
 *
 * The row is locked first, and then looked at by a second statement, which sees every claim that was before the lock;
 * claims after it find no row to guard. The entity tags go with the row, so that those of its parts need not be made anew before.
 *
 * Others may have it as their root without being below it: upstream lets a child come while its parent is moved. The foreign key
 * would keep it then, so they lose that root, and the online data migration gives them theirs.
 *
 * @param seen what the provider must still be
 * @returns what kept it, if anything did: `gone` where there was no such row, `changed` where it is to be tried again, since it
 *   is not as seen, or others have lost it as their root just now.
 */
export async function deleteProvider(
  database: Pick<Database, 'transaction'>,
  id: number,
  seen?: SeenProvider,
): Promise<'deleted' | 'gone' | 'changed' | 'has children' | 'in use'> {
  const lock = sql`select id from resource_providers where id = ${id} for update`;
  const remove = sql<{ has_children: boolean; is_root: boolean; in_use: boolean; changed: boolean; gone: boolean }>`
    with kept as (
      select exists (select from resource_providers where parent_provider_id = ${id} and id <> ${id}) as has_children,
        exists (select from resource_providers where root_provider_id = ${id} and id <> ${id}) as is_root,
        exists (select from allocations where resource_provider_id = ${id}) as in_use,
        exists (select from resource_providers p where p.id = ${id} and not ${isAsSeen(seen)}) as changed
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
  const [, rows] = await database.transaction([lock, remove]);
  const [found] = rows;
  if (found?.changed) return 'changed';
  if (found?.has_children) return 'has children';
  if (found?.in_use) return 'in use';
  if (found?.is_root) {
    await database.transaction([lock, forgetRoot(id)]);
    return 'changed';
  }
  return found?.gone ? 'deleted' : 'gone';
}

/** Only where the provider has no children: then nobody is below it, and whoever has it as root has a wrong one. */
const forgetRoot = (id: number) => sql`
  update resource_providers set root_provider_id = null where root_provider_id = ${id} and id <> ${id}
    and not exists (select from resource_providers c where c.parent_provider_id = ${id} and c.id <> ${id})`;
