/*
 * The schema that OpenStack Placement's own migrations make on PostgreSQL, for each revision. Revisions 611cd6dffd7b
 * and b5c396305c25 only check the data.
 */

const stamps = 'created_at timestamp without time zone, updated_at timestamp without time zone';

const initial = `
create table allocations (${stamps}, id serial not null, resource_provider_id integer not null,
  consumer_id varchar(36) not null, resource_class_id integer not null, used integer not null, primary key (id));
create index allocations_resource_provider_class_used_idx on allocations (resource_provider_id, resource_class_id, used);
create index allocations_resource_class_id_idx on allocations (resource_class_id);
create index allocations_consumer_id_idx on allocations (consumer_id);

create table consumers (${stamps}, id serial not null, uuid varchar(36) not null, project_id integer not null,
  user_id integer not null, generation integer default 0 not null, primary key (id),
  constraint uniq_consumers0uuid unique (uuid));
create index consumers_project_id_user_id_uuid_idx on consumers (project_id, user_id, uuid);
create index consumers_project_id_uuid_idx on consumers (project_id, uuid);

create table inventories (${stamps}, id serial not null, resource_provider_id integer not null,
  resource_class_id integer not null, total integer not null, reserved integer not null, min_unit integer not null,
  max_unit integer not null, step_size integer not null, allocation_ratio float not null, primary key (id),
  constraint uniq_inventories0resource_provider_resource_class unique (resource_provider_id, resource_class_id));
create index inventories_resource_class_id_idx on inventories (resource_class_id);
create index inventories_resource_provider_id_idx on inventories (resource_provider_id);
create index inventories_resource_provider_resource_class_idx on inventories (resource_provider_id, resource_class_id);

create table placement_aggregates (${stamps}, id serial not null, uuid varchar(36), primary key (id),
  constraint uniq_placement_aggregates0uuid unique (uuid));
create index ix_placement_aggregates_uuid on placement_aggregates (uuid);

create table projects (${stamps}, id serial not null, external_id varchar(255) not null, primary key (id),
  constraint uniq_projects0external_id unique (external_id));

create table resource_classes (${stamps}, id serial not null, name varchar(255) not null, primary key (id),
  constraint uniq_resource_classes0name unique (name));

create table resource_provider_aggregates (${stamps}, resource_provider_id integer not null,
  aggregate_id integer not null, primary key (resource_provider_id, aggregate_id));
create index resource_provider_aggregates_aggregate_id_idx on resource_provider_aggregates (aggregate_id);

create table resource_providers (${stamps}, id serial not null, uuid varchar(36) not null, name varchar(200),
  generation integer, root_provider_id integer, parent_provider_id integer,
  foreign key (parent_provider_id) references resource_providers (id),
  foreign key (root_provider_id) references resource_providers (id), primary key (id),
  constraint uniq_resource_providers0name unique (name), constraint uniq_resource_providers0uuid unique (uuid));
create index resource_providers_name_idx on resource_providers (name);
create index resource_providers_parent_provider_id_idx on resource_providers (parent_provider_id);
create index resource_providers_root_provider_id_idx on resource_providers (root_provider_id);
create index resource_providers_uuid_idx on resource_providers (uuid);

create table traits (${stamps}, id serial not null, name varchar(255) not null, primary key (id),
  constraint uniq_traits0name unique (name));

create table users (${stamps}, id serial not null, external_id varchar(255) not null, primary key (id),
  constraint uniq_users0external_id unique (external_id));

create table resource_provider_traits (${stamps}, trait_id integer not null, resource_provider_id integer not null,
  foreign key (resource_provider_id) references resource_providers (id), foreign key (trait_id) references traits (id),
  primary key (trait_id, resource_provider_id));
create index resource_provider_traits_resource_provider_trait_idx
  on resource_provider_traits (resource_provider_id, trait_id);

create table alembic_version (version_num varchar(32) not null, constraint alembic_version_pkc primary key (version_num));
`;

const consumerTypes = `
create table consumer_types (${stamps}, id serial not null, name varchar(255) not null, primary key (id),
  constraint uniq_consumer_types0name unique (name));
alter table consumers add column consumer_type_id integer;
alter table consumers add constraint consumers_consumer_type_id_fkey
  foreign key (consumer_type_id) references consumer_types (id);
create index consumers_consumer_type_id_idx on consumers (consumer_type_id);
`;

const withoutRedundantIndexes = `
drop index inventories_resource_provider_id_idx;
drop index inventories_resource_provider_resource_class_idx;
drop index ix_placement_aggregates_uuid;
drop index resource_providers_name_idx;
drop index resource_providers_uuid_idx;
`;

const dropIndexes = `${withoutRedundantIndexes} update alembic_version set version_num = 'a082b8bb98d0';`;

/**
 * The remaining steps of upstream's `db sync`, by the revision in table alembic_version. A step fails if it is done
 * twice.
 */
export const remainingSteps: Readonly<Record<string, string>> = {
  b4ed3a175331: `${consumerTypes}${dropIndexes}`,
  b5c396305c25: `${consumerTypes}${dropIndexes}`,
  '422ece571366': dropIndexes,
  a082b8bb98d0: '',
};

const at = (revision: string, ...steps: readonly string[]): string =>
  `${steps.join('')} insert into alembic_version (version_num) values ('${revision}');`;

/** SQL that makes upstream's schema in an empty database, by revision. */
export const upstreamSchemas: Readonly<Record<string, string>> = {
  b4ed3a175331: at('b4ed3a175331', initial),
  b5c396305c25: at('b5c396305c25', initial),
  '422ece571366': at('422ece571366', initial, consumerTypes),
  a082b8bb98d0: at('a082b8bb98d0', initial, consumerTypes, withoutRedundantIndexes),
};
