import { type RawBuilder, sql } from 'kysely';
import { utcNow } from '../../engine/time.ts';
import { providerTagsAreWritten } from '../entity_tags.ts';
import { writtenBy } from './judged_provider.ts';

/** A provider to insert, without a parent. */
export type NewProvider = {
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

/** A provider to insert below a parent. */
export type NewChild = NewProvider & { readonly parent: { readonly id: number; readonly uuid: string } };

/**
 * Inserts providers without a parent; each is its own root. A provider whose name or UUID is taken is not inserted.
 *
 * Upstream writes a root provider twice, since its root id is known only after the insert. So `updated_at` is set here
 * as well.
 */
export const createRoots = (providers: readonly NewProvider[]): readonly RawBuilder<unknown>[] => [
  sql`
    with ${requestedProviders(providers)}, made as (
      insert into resource_providers (id, uuid, name, generation, root_provider_id, created_at, updated_at)
      select id, uuid, name, 0, id, ${utcNow}, ${utcNow} from requested, ${providerTagsAreWritten} ${orderByName}
      on conflict do nothing
      returning id
    ), ${madeTags}
    select index, id, 0 as generation, null::integer as "parentId", null::integer as "rootId", ${writtenBy}
    from requested join made using (id)`,
];

/**
 * Inserts providers below their parents, whose roots they get. A provider whose name or UUID is taken, or whose parent does not exist, is
 * not inserted.
 *
 * The parents are locked, so that they cannot get another root meanwhile. The lock is the one that writes of a parent
 * take: two transactions that shared a weaker lock, and then wrote, would deadlock.
 */
export const createChildren = (providers: readonly NewChild[]): readonly RawBuilder<unknown>[] => [
  sql`
    with ${requestedProviders(providers)}, parent as materialized (
      select id, uuid, parent_provider_id, root_provider_id from resource_providers
      where uuid = any(${[...new Set(providers.map(({ parent }) => parent.uuid))]}::text[])
      order by id for no key update
    ), child as (
      select requested.id, requested.uuid, requested.name, parent.id as parent_id, coalesce(parent.root_provider_id, (${topOf})) as root_id
      from requested join unnest(${providers.map((_, index) => index)}::integer[], ${providers.map(({ parent }) => parent.uuid)}::text[]
        ) as below (index, uuid) using (index)
      join parent on parent.uuid = below.uuid
    ), made as (
      insert into resource_providers (id, uuid, name, generation, parent_provider_id, root_provider_id, created_at)
      select id, uuid, name, 0, parent_id, root_id, ${utcNow} from child, ${providerTagsAreWritten} ${orderByName}
      on conflict do nothing
      returning id, parent_provider_id, root_provider_id
    ), ${madeTags}
    select index, id, 0 as generation, parent_provider_id as "parentId", root_provider_id as "rootId", ${writtenBy}
    from requested join made using (id)`,
];

/** Table `requested`: the providers with their new ids. `index` is the index of each among them. */
const requestedProviders = (providers: readonly NewProvider[]) => {
  const tags = (part: keyof NewProvider['tags']) => providers.map((provider) => provider.tags[part]);
  return sql`
    requested as materialized (
      select ${freeProviderId(sql`a.index`)} as id, a.*
      from unnest(${providers.map((_, index) => index)}::integer[], ${providers.map(({ uuid }) => uuid)}::text[],
        ${providers.map(({ name }) => name)}::text[], ${tags('provider')}::text[], ${tags('inventories')}::text[],
        ${tags('traits')}::text[], ${tags('aggregates')}::text[]
      ) as a (index, uuid, name, provider_tag, inventories_tag, traits_tag, aggregates_tag)
    )`;
};

/** So that two transactions that insert the same names do not wait for each other in a circle. */
const orderByName = sql`order by name collate "C"`;

/** The root of a parent from before roots were noted, which the online data migration has not reached yet. */
const topOf = sql`
  with recursive up as (
    select parent.id, parent.parent_provider_id
    union
    select p.id, p.parent_provider_id from up join resource_providers p on p.id = up.parent_provider_id
  ) select id from up where parent_provider_id is null`;

/**
 * Writes the rows of tags. They replace rows with the same ids, which may be left from deleted providers: the online
 * data migration can insert one while the provider is being deleted.
 */
const madeTags = sql`
    tagged as (
      insert into resource_provider_etags (resource_provider_id, provider, inventories, traits, aggregates)
      select id, provider_tag, inventories_tag, traits_tag, aggregates_tag from requested join made using (id)
      on conflict (resource_provider_id) do update set provider = excluded.provider, inventories = excluded.inventories,
        traits = excluded.traits, aggregates = excluded.aggregates
    )`;

const drawn = sql`nextval(pg_get_serial_sequence('resource_providers', 'id'))::integer`;

/**
 * The next id of the sequence that no provider has. It is known before the provider is inserted, since it may also be the root of that
 * provider and of other providers.
 *
 * @param row a value of the row that the id is for, which is not null: so each row gets a different id
 */
export const freeProviderId = (row: RawBuilder<unknown>): RawBuilder<number> => sql`(
  with recursive drawn_id (id, is_taken) as (
    select id, ${isTaken} from (select ${drawn} as id where ${row} is not null) as drawn
    union all select id, ${isTaken} from (select ${drawn} as id from drawn_id where is_taken) as drawn
  ) select id from drawn_id where not is_taken)`;

/** Checked for each id by itself: to leave out many ids at once, a plan may read all providers. */
const isTaken = sql`exists (select from resource_providers p where p.id = drawn.id)`;
