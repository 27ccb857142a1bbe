import { type RawBuilder, sql } from 'kysely';

/** What the database says of providers, in the form the fleet takes in. Times are milliseconds since 1970. */
export type ProviderRow = {
  readonly id: number;
  readonly uuid: string;
  readonly name: string | null;
  readonly generation: number;
  readonly parent: number | null;
  readonly root: number | null;
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
  readonly allocation_ratio: number;
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

const milliseconds = (column: RawBuilder<unknown>) => sql`(extract(epoch from ${column}) * 1000)::float8`;
const created = milliseconds(sql`created_at`);
const updated = milliseconds(sql`updated_at`);
const modified = milliseconds(sql`coalesce(i.updated_at, i.created_at)`);

/** A provider that upstream has not given a root yet (old data) reads as null here; the fleet follows its parents. */
export const selectProviders = sql<ProviderRow>`
  select id, uuid, name, coalesce(generation, 0) as generation, parent_provider_id as parent, root_provider_id as root,
    ${created} as created, ${updated} as updated
  from resource_providers`;

const inventoryColumns = sql`i.resource_provider_id as provider, i.resource_class_id as class, i.total, i.reserved,
  i.min_unit, i.max_unit, i.step_size, i.allocation_ratio, ${modified} as modified`;

/** All inventories with their usages: one pass over all allocations. */
export const selectAllInventories = sql<InventoryRow>`
  select ${inventoryColumns}, coalesce(usage.used, 0)::float8 as used
  from inventories i left join (
    select resource_provider_id, resource_class_id, sum(used) as used from allocations group by 1, 2
  ) as usage using (resource_provider_id, resource_class_id)`;

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
