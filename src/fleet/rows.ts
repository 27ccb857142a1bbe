import { type RawBuilder, sql } from 'kysely';

/**
 * What the database says of providers, in the form the fleet takes in. Times are whole seconds since 1970, which is all that
 * HTTP dates show: V8 keeps a small integer in its place, and a fraction in an object of its own.
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
export type InventoryRow = {
  readonly provider: number;
  readonly class: number;
  readonly total: number;
  readonly reserved: number;
  readonly min_unit: number;
  readonly max_unit: number;
  readonly step_size: number;
  /** JSON has the last three as text. */
  readonly allocation_ratio: number | 'NaN' | 'Infinity' | '-Infinity';
  readonly modified: number | null;
  readonly used: number;
};
export type TraitRow = { readonly provider: number; readonly trait: number };
export type AggregateRow = { readonly provider: number; readonly aggregate: string };
export type NameRow = {
  readonly id: number;
  readonly name: string;
  readonly created: number | null;
  readonly updated: number | null;
};

/** The providers of a deployment or of a part of it, and what each of them has. */
export type FleetRows = {
  readonly providers: readonly ProviderRow[];
  readonly inventories: readonly InventoryRow[];
  readonly traits: readonly TraitRow[];
  /** By the id of the aggregate. */
  readonly aggregates: readonly AggregateRow[];
};
/** All names that rows refer to by id. */
export type NameRows = { readonly traitNames: readonly NameRow[]; readonly classNames: readonly NameRow[] };

/** `extract` would compute in decimals, which takes six times as long. */
const seconds = (column: RawBuilder<unknown>) => sql`floor(date_part('epoch', ${column}))`;
const created = seconds(sql`created_at`);
const updated = seconds(sql`updated_at`);
const modified = seconds(sql`coalesce(i.updated_at, i.created_at)`);

/** Without the root, which old data may lack: the fleet follows the parents. */
export const selectProviders = sql<ProviderRow>`
  select id, uuid, name, coalesce(generation, 0) as generation, parent_provider_id as parent, ${created} as created,
    ${updated} as updated
  from resource_providers`;

/** Ids of providers, the first and the last included. */
export type IdRange = { readonly first: number; readonly last: number };
export const between = ({ first, last }: IdRange) => sql`between ${first}::integer and ${last}::integer`;

const inventoryColumns = sql`i.resource_provider_id as provider, i.resource_class_id as class, i.total, i.reserved,
  i.min_unit, i.max_unit, i.step_size, i.allocation_ratio, ${modified} as modified`;

/** The inventories of providers from one id to another with their usages: one pass over their allocations. */
export const selectInventoriesBetween = (range: IdRange) => sql<InventoryRow>`
  select ${inventoryColumns}, coalesce(usage.used, 0)::float8 as used
  from inventories i left join (
    select resource_provider_id, resource_class_id, sum(used) as used from allocations
    where resource_provider_id ${between(range)} group by 1, 2
  ) as usage using (resource_provider_id, resource_class_id)
  where i.resource_provider_id ${between(range)}`;

/** Some providers' inventories with their usages: one index range of allocations for each. */
export const selectInventories = sql<InventoryRow>`
  select ${inventoryColumns}, (
    select coalesce(sum(a.used), 0)::float8 from allocations a
    where a.resource_provider_id = i.resource_provider_id and a.resource_class_id = i.resource_class_id
  ) as used
  from inventories i`;

export const selectTraits = sql<TraitRow>`
  select resource_provider_id as provider, trait_id as trait from resource_provider_traits`;

export const selectAggregates = sql<AggregateRow>`
  select m.resource_provider_id as provider, a.uuid as aggregate
  from resource_provider_aggregates m join placement_aggregates a on a.id = m.aggregate_id`;

export const selectTraitNames = sql<NameRow>`select id, name, ${created} as created, ${updated} as updated from traits`;
export const selectClassNames = sql<NameRow>`
  select id, name, ${created} as created, ${updated} as updated from resource_classes`;

/** The rows of a query as one value, a JSON list of objects; null where there are none. */
export const listOf = (query: RawBuilder<unknown>) => sql`(select json_agg(r) from (${query}) as r)`;
