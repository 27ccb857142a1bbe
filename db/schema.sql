-- The schema of the database, as the migrations make it. Written by "npm run schema"; not to be edited.

create sequence allocations_id_seq as integer;

create sequence cells_id_seq as integer;

create sequence consumer_types_id_seq as integer;

create sequence consumers_id_seq as integer;

create sequence inventories_id_seq as integer;

create sequence placement_aggregates_id_seq as integer;

create sequence projects_id_seq as integer;

create sequence resource_classes_id_seq as integer;

create sequence resource_providers_id_seq as integer;

create sequence traits_id_seq as integer;

create sequence users_id_seq as integer;

create table alembic_version (
  version_num character varying(32) not null
);

create table allocations (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  id integer default nextval('allocations_id_seq'::regclass) not null,
  resource_provider_id integer not null,
  consumer_id character varying(36) not null,
  resource_class_id integer not null,
  used integer not null
);

create table cells (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  id integer default nextval('cells_id_seq'::regclass) not null,
  uuid character varying(36) not null,
  name character varying(255) not null,
  last_service_id integer default 0 not null
);

create table consumer_types (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  id integer default nextval('consumer_types_id_seq'::regclass) not null,
  name character varying(255) not null
);

create table consumers (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  id integer default nextval('consumers_id_seq'::regclass) not null,
  uuid character varying(36) not null,
  project_id integer not null,
  user_id integer not null,
  generation integer default 0 not null,
  consumer_type_id integer
);

create table inventories (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  id integer default nextval('inventories_id_seq'::regclass) not null,
  resource_provider_id integer not null,
  resource_class_id integer not null,
  total integer not null,
  reserved integer not null,
  min_unit integer not null,
  max_unit integer not null,
  step_size integer not null,
  allocation_ratio double precision not null
);

create table kysely_migration (
  name character varying(255) not null,
  "timestamp" character varying(255) not null
);

create table kysely_migration_lock (
  id character varying(255) not null,
  is_locked integer default 0 not null
);

create table placement_aggregates (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  id integer default nextval('placement_aggregates_id_seq'::regclass) not null,
  uuid character varying(36)
);

create table projects (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  id integer default nextval('projects_id_seq'::regclass) not null,
  external_id character varying(255) not null
);

create table provider_changes (
  xid xid8 default pg_current_xact_id() not null,
  provider_id integer,
  whole boolean not null,
  class_ids integer[],
  used_deltas bigint[]
);

create table provider_changes_horizon (
  xid xid8 not null
);

create table resource_classes (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  id integer default nextval('resource_classes_id_seq'::regclass) not null,
  name character varying(255) not null
);

create table resource_provider_aggregates (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  resource_provider_id integer not null,
  aggregate_id integer not null
);

create table resource_provider_traits (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  trait_id integer not null,
  resource_provider_id integer not null
);

create table resource_providers (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  id integer default nextval('resource_providers_id_seq'::regclass) not null,
  uuid character varying(36) not null,
  name character varying(200),
  generation integer,
  root_provider_id integer,
  parent_provider_id integer
);

create table services (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  cell_id integer not null,
  id integer not null,
  uuid character varying(36),
  host character varying(255) not null,
  "binary" character varying(255) not null,
  topic character varying(255),
  zone character varying(255),
  disabled boolean default false not null,
  disabled_reason character varying(255),
  forced_down boolean default false not null,
  last_seen_up timestamp without time zone
) with (fillfactor=70);

create table traits (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  id integer default nextval('traits_id_seq'::regclass) not null,
  name character varying(255) not null
);

create table users (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  id integer default nextval('users_id_seq'::regclass) not null,
  external_id character varying(255) not null
);

alter sequence allocations_id_seq owned by allocations.id;

alter sequence cells_id_seq owned by cells.id;

alter sequence consumer_types_id_seq owned by consumer_types.id;

alter sequence consumers_id_seq owned by consumers.id;

alter sequence inventories_id_seq owned by inventories.id;

alter sequence placement_aggregates_id_seq owned by placement_aggregates.id;

alter sequence projects_id_seq owned by projects.id;

alter sequence resource_classes_id_seq owned by resource_classes.id;

alter sequence resource_providers_id_seq owned by resource_providers.id;

alter sequence traits_id_seq owned by traits.id;

alter sequence users_id_seq owned by users.id;

alter table alembic_version add constraint alembic_version_pkc PRIMARY KEY (version_num);

alter table allocations add constraint allocations_pkey PRIMARY KEY (id);

alter table cells add constraint cells_pkey PRIMARY KEY (id);

alter table cells add constraint uniq_cells0name UNIQUE (name);

alter table cells add constraint uniq_cells0uuid UNIQUE (uuid);

alter table consumer_types add constraint consumer_types_pkey PRIMARY KEY (id);

alter table consumer_types add constraint uniq_consumer_types0name UNIQUE (name);

alter table consumers add constraint consumers_pkey PRIMARY KEY (id);

alter table consumers add constraint uniq_consumers0uuid UNIQUE (uuid);

alter table inventories add constraint inventories_pkey PRIMARY KEY (id);

alter table inventories add constraint uniq_inventories0resource_provider_resource_class UNIQUE (resource_provider_id, resource_class_id);

alter table kysely_migration add constraint kysely_migration_pkey PRIMARY KEY (name);

alter table kysely_migration_lock add constraint kysely_migration_lock_pkey PRIMARY KEY (id);

alter table placement_aggregates add constraint placement_aggregates_pkey PRIMARY KEY (id);

alter table placement_aggregates add constraint uniq_placement_aggregates0uuid UNIQUE (uuid);

alter table projects add constraint projects_pkey PRIMARY KEY (id);

alter table projects add constraint uniq_projects0external_id UNIQUE (external_id);

alter table resource_classes add constraint resource_classes_pkey PRIMARY KEY (id);

alter table resource_classes add constraint uniq_resource_classes0name UNIQUE (name);

alter table resource_provider_aggregates add constraint resource_provider_aggregates_pkey PRIMARY KEY (resource_provider_id, aggregate_id);

alter table resource_provider_traits add constraint resource_provider_traits_pkey PRIMARY KEY (trait_id, resource_provider_id);

alter table resource_providers add constraint resource_providers_pkey PRIMARY KEY (id);

alter table resource_providers add constraint uniq_resource_providers0name UNIQUE (name);

alter table resource_providers add constraint uniq_resource_providers0uuid UNIQUE (uuid);

alter table services add constraint services_pkey PRIMARY KEY (id, cell_id);

alter table services add constraint uniq_services0host_binary_cell UNIQUE (host, "binary", cell_id);

alter table services add constraint uniq_services0uuid UNIQUE (uuid);

alter table traits add constraint traits_pkey PRIMARY KEY (id);

alter table traits add constraint uniq_traits0name UNIQUE (name);

alter table users add constraint uniq_users0external_id UNIQUE (external_id);

alter table users add constraint users_pkey PRIMARY KEY (id);

alter table consumers add constraint consumers_consumer_type_id_fkey FOREIGN KEY (consumer_type_id) REFERENCES consumer_types(id);

alter table resource_provider_traits add constraint resource_provider_traits_resource_provider_id_fkey FOREIGN KEY (resource_provider_id) REFERENCES resource_providers(id);

alter table resource_provider_traits add constraint resource_provider_traits_trait_id_fkey FOREIGN KEY (trait_id) REFERENCES traits(id);

alter table resource_providers add constraint resource_providers_parent_provider_id_fkey FOREIGN KEY (parent_provider_id) REFERENCES resource_providers(id);

alter table resource_providers add constraint resource_providers_root_provider_id_fkey FOREIGN KEY (root_provider_id) REFERENCES resource_providers(id);

alter table services add constraint services_cell_id_fkey FOREIGN KEY (cell_id) REFERENCES cells(id);

CREATE INDEX allocations_consumer_id_idx ON public.allocations USING btree (consumer_id);

CREATE INDEX allocations_resource_class_id_idx ON public.allocations USING btree (resource_class_id);

CREATE INDEX allocations_resource_provider_class_used_idx ON public.allocations USING btree (resource_provider_id, resource_class_id, used);

CREATE INDEX consumers_consumer_type_id_idx ON public.consumers USING btree (consumer_type_id);

CREATE INDEX consumers_project_id_user_id_uuid_idx ON public.consumers USING btree (project_id, user_id, uuid);

CREATE INDEX consumers_project_id_uuid_idx ON public.consumers USING btree (project_id, uuid);

CREATE INDEX inventories_resource_class_id_idx ON public.inventories USING btree (resource_class_id);

CREATE INDEX provider_changes_xid_idx ON public.provider_changes USING btree (xid);

CREATE INDEX resource_provider_aggregates_aggregate_id_idx ON public.resource_provider_aggregates USING btree (aggregate_id);

CREATE INDEX resource_provider_traits_resource_provider_trait_idx ON public.resource_provider_traits USING btree (resource_provider_id, trait_id);

CREATE INDEX resource_providers_parent_provider_id_idx ON public.resource_providers USING btree (parent_provider_id);

CREATE INDEX resource_providers_root_provider_id_idx ON public.resource_providers USING btree (root_provider_id);

CREATE UNIQUE INDEX uniq_services0compute_host ON public.services USING btree (host) WHERE (("binary")::text = 'nova-compute'::text);

CREATE OR REPLACE FUNCTION public.log_allocations_deleted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into provider_changes (provider_id, whole, class_ids, used_deltas)
  select resource_provider_id, false, array_agg(resource_class_id), array_agg(delta)
  from (select resource_provider_id, resource_class_id, sum(-used)::bigint as delta from old_rows group by 1, 2) as moved where delta <> 0 group by resource_provider_id;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_allocations_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into provider_changes (provider_id, whole, class_ids, used_deltas)
  select resource_provider_id, false, array_agg(resource_class_id), array_agg(delta)
  from (select resource_provider_id, resource_class_id, sum(used)::bigint as delta from new_rows group by 1, 2) as moved where delta <> 0 group by resource_provider_id;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_allocations_updated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into provider_changes (provider_id, whole, class_ids, used_deltas)
  select resource_provider_id, false, array_agg(resource_class_id), array_agg(delta)
  from (select resource_provider_id, resource_class_id, sum(delta)::bigint as delta from
    (select resource_provider_id, resource_class_id, sum(used)::bigint as delta from new_rows group by 1, 2 union all select resource_provider_id, resource_class_id, sum(-used)::bigint as delta from old_rows group by 1, 2) as both_sides group by 1, 2) as moved where delta <> 0 group by resource_provider_id;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_names_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into provider_changes (provider_id, whole) values (null, true);
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_provider_parts_deleted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into provider_changes (provider_id, whole)
  select distinct resource_provider_id, true from old_rows;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_provider_parts_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into provider_changes (provider_id, whole)
  select distinct resource_provider_id, true from new_rows;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_provider_parts_updated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into provider_changes (provider_id, whole)
  select distinct resource_provider_id, true from (select resource_provider_id from old_rows union select resource_provider_id from new_rows) as rows;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_provider_rows_deleted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into provider_changes (provider_id, whole)
  select distinct id, true from old_rows;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_provider_rows_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into provider_changes (provider_id, whole)
  select distinct id, true from new_rows;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_provider_rows_updated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into provider_changes (provider_id, whole)
  select n.id, (n.uuid, n.name, n.root_provider_id, n.parent_provider_id) is distinct from
    (o.uuid, o.name, o.root_provider_id, o.parent_provider_id)
  from new_rows n join old_rows o using (id);
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_truncated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into provider_changes (provider_id, whole) values (null, false);
  return null;
end$function$;

CREATE TRIGGER log_delete AFTER DELETE ON public.allocations REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_allocations_deleted();

CREATE TRIGGER log_insert AFTER INSERT ON public.allocations REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_allocations_inserted();

CREATE TRIGGER log_truncate AFTER TRUNCATE ON public.allocations FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER log_update AFTER UPDATE ON public.allocations REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_allocations_updated();

CREATE TRIGGER log_delete AFTER DELETE ON public.inventories REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_deleted();

CREATE TRIGGER log_insert AFTER INSERT ON public.inventories REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_inserted();

CREATE TRIGGER log_truncate AFTER TRUNCATE ON public.inventories FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER log_update AFTER UPDATE ON public.inventories REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_updated();

CREATE TRIGGER log_change AFTER DELETE OR UPDATE ON public.placement_aggregates FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER log_truncate AFTER TRUNCATE ON public.placement_aggregates FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER log_change AFTER INSERT OR DELETE OR UPDATE ON public.resource_classes FOR EACH STATEMENT EXECUTE FUNCTION log_names_changed();

CREATE TRIGGER log_truncate AFTER TRUNCATE ON public.resource_classes FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER log_delete AFTER DELETE ON public.resource_provider_aggregates REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_deleted();

CREATE TRIGGER log_insert AFTER INSERT ON public.resource_provider_aggregates REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_inserted();

CREATE TRIGGER log_truncate AFTER TRUNCATE ON public.resource_provider_aggregates FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER log_update AFTER UPDATE ON public.resource_provider_aggregates REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_updated();

CREATE TRIGGER log_delete AFTER DELETE ON public.resource_provider_traits REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_deleted();

CREATE TRIGGER log_insert AFTER INSERT ON public.resource_provider_traits REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_inserted();

CREATE TRIGGER log_truncate AFTER TRUNCATE ON public.resource_provider_traits FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER log_update AFTER UPDATE ON public.resource_provider_traits REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_updated();

CREATE TRIGGER log_delete AFTER DELETE ON public.resource_providers REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_rows_deleted();

CREATE TRIGGER log_insert AFTER INSERT ON public.resource_providers REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_rows_inserted();

CREATE TRIGGER log_truncate AFTER TRUNCATE ON public.resource_providers FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER log_update AFTER UPDATE ON public.resource_providers REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_rows_updated();

CREATE TRIGGER log_change AFTER INSERT OR DELETE OR UPDATE ON public.traits FOR EACH STATEMENT EXECUTE FUNCTION log_names_changed();

CREATE TRIGGER log_truncate AFTER TRUNCATE ON public.traits FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();
