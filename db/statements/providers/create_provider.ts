import { sql } from 'kysely';
import { utcNow } from '../../engine/utc_now.ts';
import { providerTagsAreWritten } from '../written_tags.ts';
import type { ProviderWrite } from './provider_write.ts';

type NewProvider = {
  readonly uuid: string;
  readonly name: string;
  /** The entity tags of the provider, and of its parts, which are empty. */
  readonly tags: {
    readonly provider: string;
    readonly inventories: string;
    readonly traits: string;
    readonly aggregates: string;
  };
};

/**
 * Inserts a provider. Its root is the root of its parent, or the provider itself. The parent is locked, so that it
 * cannot get another root meanwhile. The lock is the one that writes of the parent take: two transactions that shared a
 * weaker lock, and then wrote, would deadlock.
 *
 * Nothing is inserted if the parent does not exist. It fails by a unique violation if the name or the UUID is taken.
 */
export function createProvider(
  provider: NewProvider & { readonly parent: { readonly id: number; readonly uuid: string } | undefined },
): ProviderWrite {
  const insert = provider.parent === undefined ? insertRoot(provider) : insertChild(provider, provider.parent.uuid);
  return { lockedId: provider.parent?.id, statements: [insert] };
}

const newId = sql`select nextval(pg_get_serial_sequence('resource_providers', 'id'))::integer as id`;

/**
 * Upstream writes a root provider twice, since its root id is known only after the insert. So `updated_at` is set here
 * as well.
 */
const insertRoot = ({ uuid, name, tags }: NewProvider) => sql`
    with made as (
      insert into resource_providers (id, uuid, name, generation, root_provider_id, created_at, updated_at)
      select id, ${uuid}::text, ${name}::text, 0, id, ${utcNow}, ${utcNow} from (${newId}) as new_id, ${providerTagsAreWritten}
      returning id
    ), ${madeTags(tags)}
    select id from made`;

const insertChild = ({ uuid, name, tags }: NewProvider, parentUuid: string) => sql`
    with parent as (
      select id, root_provider_id from resource_providers where uuid = ${parentUuid}::text for no key update
    ), way_up as (
      -- Only followed for a parent from before roots were noted, which the online data migration has not reached yet.
      with recursive up as (
        select id, parent_provider_id from resource_providers where id = (select id from parent)
        union
        select p.id, p.parent_provider_id from up join resource_providers p on p.id = up.parent_provider_id
      ) select id from up where parent_provider_id is null
    ), new_id as (${newId}
    ), made as (
      insert into resource_providers (id, uuid, name, generation, parent_provider_id, root_provider_id, created_at)
      select new_id.id, ${uuid}::text, ${name}::text, 0, parent.id,
        coalesce(parent.root_provider_id, (select id from way_up)), ${utcNow}
      from new_id, parent, ${providerTagsAreWritten}
      returning id
    ), ${madeTags(tags)}
    select id from made`;

/**
 * Writes the row of tags. It replaces a row with the same id, which may be left from a deleted provider: the online
 * data migration can insert one while the provider is being deleted.
 */
const madeTags = ({ provider, inventories, traits, aggregates }: NewProvider['tags']) => sql`
    tagged as (
      insert into resource_provider_etags (resource_provider_id, provider, inventories, traits, aggregates)
      select id, ${provider}::text, ${inventories}::text, ${traits}::text, ${aggregates}::text from made
      on conflict (resource_provider_id) do update set provider = excluded.provider, inventories = excluded.inventories,
        traits = excluded.traits, aggregates = excluded.aggregates
    )`;
