import { type Kysely, sql } from 'kysely';
import { correctRevision } from '../revision.ts';

/**
 * The schema of OpenStack Placement at its head revision, a082b8bb98d0. On a database that upstream made, at any
 * revision of its chain, it only adds what is missing: what revision 422ece571366 added, in the same form and under the
 * same names. It drops nothing, so that upstream can still apply revision a082b8bb98d0, which drops indexes.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const [table, columns] of Object.entries(tables)) {
    await sql`create table if not exists ${sql.table(table)} (${sql.raw(`${stamps}, ${columns}`)})`.execute(db);
  }
  // Revision 422ece571366 added consumer types to a table that existed before.
  await sql`alter table consumers add column if not exists consumer_type_id integer
    constraint consumers_consumer_type_id_fkey references consumer_types (id)`.execute(db);
  for (const [index, columns] of Object.entries(indexes)) {
    await sql`create index if not exists ${sql.id(index)} on ${sql.raw(columns)}`.execute(db);
  }
  await correctRevision(db);
}

const stamps = 'created_at timestamp, updated_at timestamp';
const named = (table: string) => `id serial primary key,
  name varchar(255) not null constraint uniq_${table}0name unique`;
const external = (table: string) => `id serial not null constraint ${table}_pkey primary key,
  external_id varchar(255) not null constraint uniq_${table}0external_id unique`;

const tables: Readonly<Record<string, string>> = {
  resource_classes: named('resource_classes'),
  traits: named('traits'),
  consumer_types: named('consumer_types'),
  projects: external('projects'),
  users: external('users'),
  resource_providers: `id serial primary key,
    uuid varchar(36) not null constraint uniq_resource_providers0uuid unique,
    name varchar(200) constraint uniq_resource_providers0name unique,
    generation integer,
    root_provider_id integer references resource_providers (id),
    parent_provider_id integer references resource_providers (id)`,
  inventories: `id serial primary key,
    resource_provider_id integer not null,
    resource_class_id integer not null,
    total integer not null,
    reserved integer not null,
    min_unit integer not null,
    max_unit integer not null,
    step_size integer not null,
    allocation_ratio double precision not null,
    constraint uniq_inventories0resource_provider_resource_class unique (resource_provider_id, resource_class_id)`,
  allocations: `id serial primary key,
    resource_provider_id integer not null,
    consumer_id varchar(36) not null,
    resource_class_id integer not null,
    used integer not null`,
  consumers: `id serial primary key,
    uuid varchar(36) not null constraint uniq_consumers0uuid unique,
    project_id integer not null,
    user_id integer not null,
    generation integer not null default 0,
    consumer_type_id integer constraint consumers_consumer_type_id_fkey references consumer_types (id)`,
  placement_aggregates: `id serial primary key,
    uuid varchar(36) constraint uniq_placement_aggregates0uuid unique`,
  resource_provider_aggregates: `resource_provider_id integer not null,
    aggregate_id integer not null,
    primary key (resource_provider_id, aggregate_id)`,
  resource_provider_traits: `trait_id integer not null references traits (id),
    resource_provider_id integer not null references resource_providers (id),
    primary key (trait_id, resource_provider_id)`,
};

const indexes: Readonly<Record<string, string>> = {
  allocations_consumer_id_idx: 'allocations (consumer_id)',
  allocations_resource_class_id_idx: 'allocations (resource_class_id)',
  allocations_resource_provider_class_used_idx: 'allocations (resource_provider_id, resource_class_id, used)',
  consumers_consumer_type_id_idx: 'consumers (consumer_type_id)',
  consumers_project_id_user_id_uuid_idx: 'consumers (project_id, user_id, uuid)',
  consumers_project_id_uuid_idx: 'consumers (project_id, uuid)',
  inventories_resource_class_id_idx: 'inventories (resource_class_id)',
  resource_provider_aggregates_aggregate_id_idx: 'resource_provider_aggregates (aggregate_id)',
  resource_provider_traits_resource_provider_trait_idx: 'resource_provider_traits (resource_provider_id, trait_id)',
  resource_providers_parent_provider_id_idx: 'resource_providers (parent_provider_id)',
  resource_providers_root_provider_id_idx: 'resource_providers (root_provider_id)',
};
