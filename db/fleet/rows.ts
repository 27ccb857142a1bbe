import { type RawBuilder, sql } from 'kysely';

/**
 * Rows of providers, in the form that the fleet reads. Times are whole seconds since 1970: HTTP dates show no more, and
 * V8 stores a small integer in the field itself, but a fraction in a separate object.
 */
export type ProviderRow = {
  readonly id: number;
  readonly uuid: string;
  readonly name: string | null;
  readonly generation: number;
  readonly parent: number | null;
  readonly created: number | null;
  readonly updated: number | null;
};
/** An inventory with its usage. */
export type InventoryRow = {
  readonly provider: number;
  readonly class: number;
  readonly total: number;
  readonly reserved: number;
  readonly min_unit: number;
  readonly max_unit: number;
  readonly step_size: number;
  /** NaN and the infinities are text, since JSON has no numbers for them. */
  readonly allocation_ratio: number | 'NaN' | 'Infinity' | '-Infinity';
  readonly modified: number | null;
  readonly used: number;
};
/** That a provider has a trait, both by id. */
export type TraitRow = { readonly provider: number; readonly trait: number };
/** That a provider, by id, is in an aggregate, by UUID. */
export type AggregateRow = { readonly provider: number; readonly aggregate: string };
/** A trait or a resource class; times in seconds since 1970. */
export type NameRow = {
  readonly id: number;
  readonly name: string;
  readonly created: number | null;
  readonly updated: number | null;
};

/** All providers, or some of them, with their inventories, traits and aggregates. */
export type FleetRows = {
  readonly providers: readonly ProviderRow[];
  readonly inventories: readonly InventoryRow[];
  readonly traits: readonly TraitRow[];
  /** In the order of the ids of the aggregates. */
  readonly aggregates: readonly AggregateRow[];
};
/**
 * The same, but equal values are listed once: each with its providers, and with lists of the fields that differ, in the same
 * order.
 */
export type FleetPage = {
  readonly providers: readonly ProviderRow[];
  readonly inventories: readonly (Omit<InventoryRow, 'provider' | 'modified' | 'used'> & {
    readonly providers: readonly number[];
    readonly modified: readonly (number | null)[];
    readonly used: readonly number[];
  })[];
  readonly traits: readonly { readonly trait: number; readonly providers: readonly number[] }[];
  /** In the order of the ids of the aggregates. */
  readonly aggregates: readonly { readonly aggregate: string; readonly providers: readonly number[] }[];
};

/** Few rows as a page, without joining equal values. */
export const pageOf = ({ providers, inventories, traits, aggregates }: FleetRows): FleetPage => ({
  providers,
  inventories: inventories.map(({ provider, modified, used, ...fields }) => ({
    ...fields,
    providers: [provider],
    modified: [modified],
    used: [used],
  })),
  traits: traits.map(({ provider, trait }) => ({ trait, providers: [provider] })),
  aggregates: aggregates.map(({ provider, aggregate }) => ({ aggregate, providers: [provider] })),
});

/** All names that rows refer to by id. */
export type NameRows = { readonly traitNames: readonly NameRow[]; readonly classNames: readonly NameRow[] };

/** All limits (migration 010). */
export type LimitRows = {
  readonly isCounting: boolean;
  /** By project; the project '' is for the defaults. */
  readonly projects: Readonly<Record<string, LimitRow>>;
};
type LimitRow = Readonly<Record<'resources' | 'consumers', Readonly<Record<string, number | null>>>>;

/** Seconds since 1970. `extract` would compute in decimals, which takes six times as long. */
const seconds = (column: RawBuilder<unknown>) => sql`floor(date_part('epoch', ${column}))`;
const created = seconds(sql`created_at`);
const updated = seconds(sql`updated_at`);

/** The same as an integer for JSON, whose text takes less time; null for infinity, which is none. */
const wholeSeconds = (column: RawBuilder<unknown>) =>
  sql`case when isfinite(${column}) then ${seconds(column)}::bigint end`;
const modified = wholeSeconds(sql`coalesce(i.updated_at, i.created_at)`);

/** Without `root_provider_id`, which may be null in old rows: the fleet finds roots by following parents. */
export const selectProviders = sql<ProviderRow>`
  select id, uuid, name, coalesce(generation, 0) as generation, parent_provider_id as parent,
    ${wholeSeconds(sql`created_at`)} as created, ${wholeSeconds(sql`updated_at`)} as updated
  from resource_providers`;

/** Ids of providers: a list, or all from the first to the last. */
export type Ids = readonly number[] | { readonly first: number; readonly last: number };
/** The condition that a column has one of these ids. */
export const areAmong = (ids: Ids) =>
  'first' in ids
    ? sql`between ${ids.first}::integer and ${ids.last}::integer`
    : sql`= any(${`{${ids.join()}}`}::integer[])`;

const inventoryColumns = sql`i.resource_provider_id as provider, i.resource_class_id as class, i.total, i.reserved,
  i.min_unit, i.max_unit, i.step_size, i.allocation_ratio, ${modified} as modified`;

/** The inventories of many providers with their usages, by one pass over all allocations of these providers. */
export const selectInventoriesOf = (ids: Ids) => sql<InventoryRow>`
  select ${inventoryColumns}, coalesce(usage.used, 0) as used
  from inventories i left join (
    select resource_provider_id, resource_class_id, sum(used) as used from allocations
    where resource_provider_id ${areAmong(ids)} group by 1, 2
  ) as usage using (resource_provider_id, resource_class_id)
  where i.resource_provider_id ${areAmong(ids)}`;

/** Inventories with their usages, for few providers: each usage reads one index range of allocations. */
export const selectInventories = sql<InventoryRow>`
  select ${inventoryColumns}, (
    select coalesce(sum(a.used), 0)::float8 from allocations a
    where a.resource_provider_id = i.resource_provider_id and a.resource_class_id = i.resource_class_id
  ) as used
  from inventories i`;

/** Which traits providers have. */
export const selectTraits = sql<TraitRow>`
  select resource_provider_id as provider, trait_id as trait from resource_provider_traits`;

/** Which aggregates providers are in. */
export const selectAggregates = sql<AggregateRow>`
  select m.resource_provider_id as provider, a.uuid as aggregate
  from resource_provider_aggregates m join placement_aggregates a on a.id = m.aggregate_id`;

/** The names of all traits. */
export const selectTraitNames = sql<NameRow>`select id, name, ${created} as created, ${updated} as updated from traits`;
/** The names of all resource classes. */
export const selectClassNames = sql<NameRow>`
  select id, name, ${created} as created, ${updated} as updated from resource_classes`;

/** All limits as one value, `LimitRows`. */
export const limitRows = sql`(select json_build_object('isCounting', exists (select from usage_counting), 'projects', coalesce((
    select json_object_agg(project, json_build_object('resources', resources, 'consumers', consumers)) from limits
  ), '{}')))`;

/** The rows of a query as one value, a JSON list of objects; null if there are none. */
export const listOf = (query: RawBuilder<unknown>) => sql`(select json_agg(r) from (${query}) as r)`;
