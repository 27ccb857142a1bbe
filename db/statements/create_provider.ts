import { sql } from 'kysely';
import { utcNow } from '../utc_now.ts';
import type { ProviderWrite } from './provider_write.ts';
import { providerTagsAreWritten } from './written_tags.ts';

type NewProvider = {
  readonly uuid: string;
  readonly name: string;
  /** The entity tags of the provider, and of its parts, of which there are none yet. */
  readonly tags: {
    readonly provider: string;
    readonly inventories: string;
    readonly traits: string;
    readonly aggregates: string;
  };
};

/**
 * Inserts a provider. Its root is its parent's, or itself. The parent is locked against being re-rooted meanwhile, with the lock
 * that writers of the parent take: two transactions that shared a weaker one, and then wrote, would wait for each other.
 *
 * It is not done where the parent does not exist, and fails by a unique violation where the name or the UUID is taken.
 */
export function createProvider(
  provider: NewProvider & { readonly parent: { readonly id: number; readonly uuid: string } | undefined },
): ProviderWrite {
  const insert = provider.parent === undefined ? insertRoot(provider) : insertChild(provider, provider.parent.uuid);
  return { lockedId: provider.parent?.id, statements: [insert] };
}

const newId = sql`select nextval(pg_get_serial_sequence('resource_providers', 'id'))::integer as id`;

/** Upstream writes a root twice, since its root is known only afterwards: so it has been updated. */
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

/** A row of this id may be left from a provider of before, whose deletion crossed the online data migration: it counts for nothing. */
const madeTags = ({ provider, inventories, traits, aggregates }: NewProvider['tags']) => sql`
    tagged as (
      insert into resource_provider_etags (resource_provider_id, provider, inventories, traits, aggregates)
      select id, ${provider}::text, ${inventories}::text, ${traits}::text, ${aggregates}::text from made
      on conflict (resource_provider_id) do update set provider = excluded.provider, inventories = excluded.inventories,
        traits = excluded.traits, aggregates = excluded.aggregates
    )`;
