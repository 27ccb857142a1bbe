import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { utcNow } from '../utc_now.ts';

/**
 * Inserts a provider. Its root is its parent's, or itself. The parent is locked against being re-rooted meanwhile.
 *
 * @returns false where the parent does not exist.
 * @throws a unique violation where the name or the UUID is taken.
 */
export async function createProvider(
  { kysely }: Database,
  provider: { readonly uuid: string; readonly name: string; readonly parentUuid: string | null },
): Promise<boolean> {
  const { rows } = await sql<{ id: number }>`
    with parent as (
      select id, root_provider_id from resource_providers where uuid = ${provider.parentUuid}::text for share
    ), new_id as (
      select nextval(pg_get_serial_sequence('resource_providers', 'id'))::integer as id
    )
    insert into resource_providers (id, uuid, name, generation, parent_provider_id, root_provider_id, created_at,
      updated_at)
    select new_id.id, ${provider.uuid}::text, ${provider.name}::text, 0, parent.id,
      case when parent.id is null then new_id.id else coalesce(parent.root_provider_id, parent.id) end, ${utcNow},
      case when parent.id is null then ${utcNow} end -- upstream writes a root twice: its root is known only afterwards
    from new_id left join parent on true
    where ${provider.parentUuid}::text is null or parent.id is not null
    returning id`.execute(kysely);
  return rows.length === 1;
}
