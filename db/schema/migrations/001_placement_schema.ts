import { type Kysely, type QueryExecutorProvider, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { repeatUntilLocked, waitBriefly } from '../brief_locks.ts';
import { addMissingColumns, type Columns } from '../missing_table.ts';
import { correctRevision } from '../revision.ts';

/**
 * The schema of OpenStack Placement at its head revision, a082b8bb98d0. On a database that upstream made, at any
 * revision of its chain, it only adds what is missing: what revision 422ece571366 added, in the same form and under the
 * same names. It drops nothing, so that upstream can still apply revision a082b8bb98d0, which drops indexes.
 *
 * It first checks what is missing, since `if not exists` locks a table even if there is nothing to add.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const table of Object.keys(tables)) await createTable(db, table);
  await addMissingColumns(db, consumerType);
  for (const { name } of await missingIndexes(db)) {
    await sql`create index ${sql.id(name)} on ${sql.raw(indexes[name] ?? '')}`.execute(db);
  }
  await correctRevision(db);
}

/**
 * Builds missing indexes of upstream's tables before the migration, outside of its transaction: so other programs can write meanwhile. If
 * it was interrupted, it continues where it stopped. Without upstream's tables nothing is done.
 */
export async function completeUpstream({ unlimited }: Pick<Database, 'unlimited'>): Promise<void> {
  const { rows } = await sql`select where to_regclass('consumers') is not null`.execute(unlimited);
  if (rows.length === 0) return;
  const addConsumerTypes = () =>
    unlimited.transaction().execute(async (trx) => {
      await waitBriefly(trx);
      await createTable(trx, 'consumer_types');
      await addMissingColumns(trx, consumerType);
    });
  await repeatUntilLocked(addConsumerTypes);
  for (const { name, isUnfinished } of await missingIndexes(unlimited)) {
    if (isUnfinished) await sql`drop index concurrently ${sql.id(name)}`.execute(unlimited);
    await sql`create index concurrently ${sql.id(name)} on ${sql.raw(indexes[name] ?? '')}`.execute(unlimited);
  }
}

const createTable = (db: QueryExecutorProvider, table: string) =>
  sql`create table if not exists ${sql.table(table)} (${sql.raw(`${stamps}, ${tables[table]}`)})`.execute(db);

/** The indexes that existing tables lack, and those whose building was interrupted. */
async function missingIndexes(db: QueryExecutorProvider) {
  const names = Object.keys(indexes);
  const onTables = Object.values(indexes).map((columns) => columns.split(' ')[0]);
  const { rows } = await sql<{ readonly name: string; readonly isUnfinished: boolean }>`
    select name, indexrelid is not null as "isUnfinished"
    from unnest(${names}::text[], ${onTables}::text[]) as wanted (name, on_table)
    left join pg_index on indexrelid = to_regclass(name)
    where to_regclass(on_table) is not null and indisvalid is not true`.execute(db);
  return rows;
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

/** Revision 422ece571366 added consumer types to a table that existed before. */
const consumerType: Columns = {
  table: 'consumers',
  columns: {
    consumer_type_id: 'integer constraint consumers_consumer_type_id_fkey references consumer_types (id)',
  },
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
