import { type RawBuilder, sql } from 'kysely';
import { utcNow } from '../../engine/time.ts';
import type { NewProvider } from '../providers/create_providers.ts';
import type { InventoryValues } from '../providers/write_inventories.ts';

/*
 * The statements that insert thousands of providers with all their parts and entity tags. Each inserts the rows of one
 * table, in a transaction with `providerTagsAreWritten`: the triggers log the change, but compute no tags.
 */

/** A provider to insert. */
export type ProviderToInsert = {
  readonly id: number;
  readonly uuid: string;
  readonly name: string;
  readonly parentId: number | null;
  /** Its root, if that is inserted as well; else null, and `outsideId` is a provider of the same tree that exists. */
  readonly rootId: number | null;
  readonly outsideId: number | null;
  readonly tags: NewProvider['tags'];
};

/** An inventory to insert. */
export type InventoryToInsert = InventoryValues & { readonly providerId: number; readonly tag: string };

/** The values of some fields of all items, as arrays for `unnest`. */
const arrays = <Item>(
  items: readonly Item[],
  types: { readonly [Field in keyof Item]?: string },
): RawBuilder<unknown> =>
  sql.join(
    Object.entries<string | undefined>(types).map(
      // The type of the parameter guarantees that these are keys of the items.
      ([field, type]) => sql`${items.map((item) => item[field as keyof Item])}::${sql.raw(type ?? 'text')}[]`,
    ),
  );

/** Locks the existing providers that `outsideId` names, so that their roots do not change. */
export const insertProviders = (providers: readonly ProviderToInsert[]): RawBuilder<unknown> => sql`
    with outside as materialized (
      select id, root_provider_id from resource_providers
      where id = any(${[...new Set(providers.map(({ outsideId }) => outsideId))]}::integer[]) order by id for no key update
    )
    insert into resource_providers (id, uuid, name, generation, parent_provider_id, root_provider_id, created_at, updated_at)
    select n.id, n.uuid, n.name, 0, n.parent_id, coalesce(n.root_id, outside.root_provider_id), ${utcNow}, ${utcNow}
    from unnest(${arrays(providers, { id: 'integer', uuid: 'text', name: 'text', parentId: 'integer', rootId: 'integer', outsideId: 'integer' })})
      as n (id, uuid, name, parent_id, root_id, outside_id) left join outside on outside.id = n.outside_id order by n.id`;

/** Replaces a row that is left from a deleted provider with the same id. */
export const insertProviderTags = (providers: readonly ProviderToInsert[]): RawBuilder<unknown> => sql`
    insert into resource_provider_etags (resource_provider_id, provider, inventories, traits, aggregates)
    select * from unnest(${arrays(providers, { id: 'integer' })}, ${arrays(
      providers.map(({ tags }) => tags),
      { provider: 'text', inventories: 'text', traits: 'text', aggregates: 'text' },
    )})
    on conflict (resource_provider_id) do update set provider = excluded.provider, inventories = excluded.inventories,
      traits = excluded.traits, aggregates = excluded.aggregates`;

/** Inserts inventories with their entity tags. */
export const insertInventories = (inventories: readonly InventoryToInsert[]): RawBuilder<unknown> => sql`
    insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
      allocation_ratio, etag, created_at)
    select n.*, ${utcNow} from unnest(${arrays(inventories, {
      providerId: 'integer',
      classId: 'integer',
      total: 'integer',
      reserved: 'integer',
      minUnit: 'integer',
      maxUnit: 'integer',
      stepSize: 'integer',
      allocationRatio: 'float8',
      tag: 'text',
    })}) as n`;

/** Sets the traits of providers. */
export const insertTraits = (
  held: readonly { readonly providerId: number; readonly traitId: number }[],
): RawBuilder<unknown> => sql`
    insert into resource_provider_traits (resource_provider_id, trait_id, created_at)
    select n.*, ${utcNow} from unnest(${arrays(held, { providerId: 'integer', traitId: 'integer' })}) as n`;

/** Creates missing aggregates in the order of their UUIDs: so two transactions with the same ones cannot deadlock. */
export const ensureAggregates = (uuids: readonly string[]): RawBuilder<unknown> => sql`
    insert into placement_aggregates (uuid, created_at)
    select uuid, ${utcNow} from unnest(${uuids}::text[]) as uuid order by uuid on conflict (uuid) do nothing`;

/** Puts providers into aggregates, which must exist. */
export const insertMembers = (
  members: readonly { readonly providerId: number; readonly aggregate: string }[],
): RawBuilder<unknown> => sql`
    insert into resource_provider_aggregates (resource_provider_id, aggregate_id, created_at)
    select n.provider_id, a.id, ${utcNow}
    from unnest(${arrays(members, { providerId: 'integer', aggregate: 'text' })}) as n (provider_id, uuid)
      join placement_aggregates a on a.uuid = n.uuid`;
