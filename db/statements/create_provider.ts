import { sql } from 'kysely';
import { utcNow } from '../utc_now.ts';
import type { ProviderWrite } from './provider_write.ts';

/**
 * Inserts a provider. Its root is its parent's, or itself. The parent is locked against being re-rooted meanwhile, with the lock
 * that writers of the parent take: two transactions that shared a weaker one, and then wrote, would wait for each other.
 *
 * It is not done where the parent does not exist, and fails by a unique violation where the name or the UUID is taken.
 */
export function createProvider(provider: {
  readonly uuid: string;
  readonly name: string;
  readonly parent: { readonly id: number; readonly uuid: string } | undefined;
}): ProviderWrite {
  const parentUuid = provider.parent?.uuid ?? null;
  const insert = sql`
    with parent as (
      select id, root_provider_id from resource_providers where uuid = ${parentUuid}::text for no key update
    ), way_up as (
      -- Only followed for a parent from before roots were noted, which the online data migration has not reached yet.
      with recursive up as (
        select id, parent_provider_id from resource_providers where id = (select id from parent)
        union
        select p.id, p.parent_provider_id from up join resource_providers p on p.id = up.parent_provider_id
      ) select id from up where parent_provider_id is null
    ), new_id as (
      select nextval(pg_get_serial_sequence('resource_providers', 'id'))::integer as id
    )
    insert into resource_providers (id, uuid, name, generation, parent_provider_id, root_provider_id, created_at,
      updated_at)
    select new_id.id, ${provider.uuid}::text, ${provider.name}::text, 0, parent.id,
      case when parent.id is null then new_id.id else coalesce(parent.root_provider_id, (select id from way_up)) end, ${utcNow},
      case when parent.id is null then ${utcNow} end -- upstream writes a root twice: its root is known only afterwards
    from new_id left join parent on true
    where ${parentUuid}::text is null or parent.id is not null
    returning id`;
  return { lockedId: provider.parent?.id, statements: [insert] };
}
