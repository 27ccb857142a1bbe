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

create sequence tokens_id_seq as integer;

create sequence traits_id_seq as integer;

create sequence usage_record_id_seq as bigint;

create sequence users_id_seq as integer;

create sequence waiting_number_seq as bigint;

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

create table consumer_names (
  consumer_id integer not null,
  name character varying(255) not null
) with (vacuum_truncate=off);

create table consumer_terms (
  consumer_id integer not null,
  generation integer not null,
  expires_at timestamp(3) with time zone not null
) with (vacuum_truncate=off);

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
  consumer_type_id integer,
  etag character varying(132)
);

create table deleted_limits (
  project character varying(255) collate "C" not null,
  generation integer not null
);

create table doubtful_usages (
  project_id integer
);

create table former_consumers (
  uuid character varying(36) collate "C" not null,
  generations bigint not null,
  removed_at timestamp with time zone default now() not null
) with (vacuum_truncate=off);

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
  allocation_ratio double precision not null,
  etag character varying(132)
);

create table inventory_changes (
  xid xid8 default pg_current_xact_id() not null,
  provider_id integer
) with (vacuum_truncate=off);

create table kysely_migration (
  name character varying(255) not null,
  "timestamp" character varying(255) not null
);

create table kysely_migration_lock (
  id character varying(255) not null,
  is_locked integer default 0 not null
);

create table limits (
  project character varying(255) collate "C" not null,
  generation integer not null,
  resources jsonb not null,
  consumers jsonb not null,
  is_imported boolean default false not null,
  updated_at timestamp without time zone not null
);

create table open_usage_records (
  id bigint default nextval('usage_record_id_seq'::regclass) not null,
  consumer_id character varying(36) not null,
  resource_provider_id integer not null,
  resource_class_id integer not null,
  project_id integer,
  user_id integer,
  consumer_type_id integer,
  amount bigint not null,
  name character varying(255),
  provider_uuid character varying(36),
  provider_name character varying(200),
  class_name character varying(255),
  began_at timestamp with time zone not null,
  begun_by xid8
) with (vacuum_truncate=off);

create table placement_aggregates (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  id integer default nextval('placement_aggregates_id_seq'::regclass) not null,
  uuid character varying(36)
);

create table project_usages (
  project_id integer,
  consumer_type_id integer,
  class_ids integer[] not null,
  amounts bigint[] not null
) with (vacuum_truncate=off);

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
  used_deltas bigint[],
  uuid character varying(36),
  parts smallint,
  consumer_ids character varying(36)[],
  logged_at timestamp with time zone
) with (vacuum_truncate=off);

create table provider_changes_horizon (
  xid xid8 not null
);

create table resource_classes (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  id integer default nextval('resource_classes_id_seq'::regclass) not null,
  name character varying(255) not null,
  etag character varying(132)
);

create table resource_provider_aggregates (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  resource_provider_id integer not null,
  aggregate_id integer not null
);

create table resource_provider_etags (
  resource_provider_id integer not null,
  provider character varying(132),
  inventories character varying(132),
  traits character varying(132),
  aggregates character varying(132)
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
  last_seen_up timestamp without time zone,
  uptime character varying(255)
) with (fillfactor=70);

create table tokens (
  id integer default nextval('tokens_id_seq'::regclass) not null,
  uuid character varying(36) not null,
  hash character varying(64) not null,
  prefix character varying(16) not null,
  user_id character varying(255) not null,
  project_id character varying(255) not null,
  roles text[] not null,
  created_at timestamp without time zone not null,
  expires_at timestamp without time zone,
  used_at timestamp without time zone
);

create table traits (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  id integer default nextval('traits_id_seq'::regclass) not null,
  name character varying(255) not null,
  etag character varying(132)
);

create table usage_counting (
  since timestamp without time zone not null,
  is_counted boolean not null
);

create table usage_history (
  since timestamp with time zone not null,
  is_complete boolean not null,
  until timestamp with time zone
);

create table usage_records (
  id bigint not null,
  consumer_id character varying(36) not null,
  name character varying(255),
  project_id integer,
  user_id integer,
  consumer_type_id integer,
  provider_uuid character varying(36),
  provider_name character varying(200),
  class_name character varying(255),
  amount bigint not null,
  began_at timestamp with time zone not null,
  ended_at timestamp with time zone not null,
  ended character varying(16)
);

create table users (
  created_at timestamp without time zone,
  updated_at timestamp without time zone,
  id integer default nextval('users_id_seq'::regclass) not null,
  external_id character varying(255) not null
);

create table waiting (
  number bigint default nextval('waiting_number_seq'::regclass) not null,
  claim character varying(64) not null,
  consumers text[] not null,
  project_id character varying(255) not null,
  user_id character varying(255) not null,
  line character varying(64),
  process uuid not null,
  former_process uuid,
  since timestamp with time zone not null,
  until timestamp with time zone not null,
  asked_at timestamp with time zone not null,
  waits_for character varying(16) not null,
  condition text not null,
  left_at timestamp with time zone,
  is_removed boolean default false not null,
  names text[],
  other_projects text[],
  other_users text[]
);

create table waiting_processes (
  id uuid not null,
  seen_at timestamp with time zone not null
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

alter sequence tokens_id_seq owned by tokens.id;

alter sequence traits_id_seq owned by traits.id;

alter sequence usage_record_id_seq owned by open_usage_records.id;

alter sequence users_id_seq owned by users.id;

alter sequence waiting_number_seq owned by waiting.number;

alter table alembic_version add constraint alembic_version_pkc PRIMARY KEY (version_num);

alter table allocations add constraint allocations_pkey PRIMARY KEY (id);

alter table cells add constraint cells_pkey PRIMARY KEY (id);

alter table cells add constraint uniq_cells0name UNIQUE (name);

alter table cells add constraint uniq_cells0uuid UNIQUE (uuid);

alter table consumer_names add constraint consumer_names_pkey PRIMARY KEY (consumer_id);

alter table consumer_terms add constraint consumer_terms_pkey PRIMARY KEY (consumer_id);

alter table consumer_types add constraint consumer_types_pkey PRIMARY KEY (id);

alter table consumer_types add constraint uniq_consumer_types0name UNIQUE (name);

alter table consumers add constraint consumers_pkey PRIMARY KEY (id);

alter table consumers add constraint uniq_consumers0uuid UNIQUE (uuid);

alter table deleted_limits add constraint deleted_limits_pkey PRIMARY KEY (project);

alter table former_consumers add constraint former_consumers_pkey PRIMARY KEY (uuid);

alter table inventories add constraint inventories_pkey PRIMARY KEY (id);

alter table inventories add constraint uniq_inventories0resource_provider_resource_class UNIQUE (resource_provider_id, resource_class_id);

alter table kysely_migration add constraint kysely_migration_pkey PRIMARY KEY (name);

alter table kysely_migration_lock add constraint kysely_migration_lock_pkey PRIMARY KEY (id);

alter table limits add constraint limits_pkey PRIMARY KEY (project);

alter table placement_aggregates add constraint placement_aggregates_pkey PRIMARY KEY (id);

alter table placement_aggregates add constraint uniq_placement_aggregates0uuid UNIQUE (uuid);

alter table projects add constraint projects_pkey PRIMARY KEY (id);

alter table projects add constraint uniq_projects0external_id UNIQUE (external_id);

alter table resource_classes add constraint resource_classes_pkey PRIMARY KEY (id);

alter table resource_classes add constraint uniq_resource_classes0name UNIQUE (name);

alter table resource_provider_aggregates add constraint resource_provider_aggregates_pkey PRIMARY KEY (resource_provider_id, aggregate_id);

alter table resource_provider_etags add constraint resource_provider_etags_pkey PRIMARY KEY (resource_provider_id);

alter table resource_provider_traits add constraint resource_provider_traits_pkey PRIMARY KEY (trait_id, resource_provider_id);

alter table resource_providers add constraint resource_providers_pkey PRIMARY KEY (id);

alter table resource_providers add constraint uniq_resource_providers0name UNIQUE (name);

alter table resource_providers add constraint uniq_resource_providers0uuid UNIQUE (uuid);

alter table services add constraint services_pkey PRIMARY KEY (id, cell_id);

alter table services add constraint uniq_services0host_binary_cell UNIQUE (host, "binary", cell_id);

alter table services add constraint uniq_services0uuid UNIQUE (uuid);

alter table tokens add constraint tokens_pkey PRIMARY KEY (id);

alter table tokens add constraint uniq_tokens0hash UNIQUE (hash);

alter table tokens add constraint uniq_tokens0uuid UNIQUE (uuid);

alter table traits add constraint traits_pkey PRIMARY KEY (id);

alter table traits add constraint uniq_traits0name UNIQUE (name);

alter table usage_records add constraint usage_records_pkey PRIMARY KEY (ended_at, id);

alter table users add constraint uniq_users0external_id UNIQUE (external_id);

alter table users add constraint users_pkey PRIMARY KEY (id);

alter table waiting add constraint waiting_pkey PRIMARY KEY (claim);

alter table waiting_processes add constraint waiting_processes_pkey PRIMARY KEY (id);

alter table consumers add constraint consumers_consumer_type_id_fkey FOREIGN KEY (consumer_type_id) REFERENCES consumer_types(id);

alter table resource_provider_traits add constraint resource_provider_traits_resource_provider_id_fkey FOREIGN KEY (resource_provider_id) REFERENCES resource_providers(id);

alter table resource_provider_traits add constraint resource_provider_traits_trait_id_fkey FOREIGN KEY (trait_id) REFERENCES traits(id);

alter table resource_providers add constraint resource_providers_parent_provider_id_fkey FOREIGN KEY (parent_provider_id) REFERENCES resource_providers(id);

alter table resource_providers add constraint resource_providers_root_provider_id_fkey FOREIGN KEY (root_provider_id) REFERENCES resource_providers(id);

alter table services add constraint services_cell_id_fkey FOREIGN KEY (cell_id) REFERENCES cells(id);

CREATE INDEX allocations_consumer_id_idx ON public.allocations USING btree (consumer_id);

CREATE INDEX allocations_resource_class_id_idx ON public.allocations USING btree (resource_class_id);

CREATE INDEX allocations_resource_provider_class_used_idx ON public.allocations USING btree (resource_provider_id, resource_class_id, used);

CREATE INDEX consumer_names_name_idx ON public.consumer_names USING btree (name);

CREATE INDEX consumer_terms_expires_at_idx ON public.consumer_terms USING btree (expires_at, ((consumer_id + 0)));

CREATE INDEX consumers_consumer_type_id_idx ON public.consumers USING btree (consumer_type_id);

CREATE INDEX consumers_project_id_user_id_uuid_idx ON public.consumers USING btree (project_id, user_id, uuid);

CREATE INDEX consumers_project_id_uuid_idx ON public.consumers USING btree (project_id, uuid);

CREATE INDEX inventories_resource_class_id_idx ON public.inventories USING btree (resource_class_id);

CREATE INDEX inventory_changes_xid_idx ON public.inventory_changes USING btree (xid);

CREATE INDEX open_usage_records_consumer_id_idx ON public.open_usage_records USING btree (consumer_id);

CREATE INDEX open_usage_records_without_owner_idx ON public.open_usage_records USING btree (consumer_id) WHERE (project_id IS NULL);

CREATE INDEX project_usages_project_id_idx ON public.project_usages USING btree (project_id);

CREATE INDEX provider_changes_xid_idx ON public.provider_changes USING btree (xid);

CREATE INDEX resource_provider_aggregates_aggregate_id_idx ON public.resource_provider_aggregates USING btree (aggregate_id);

CREATE INDEX resource_provider_traits_resource_provider_trait_idx ON public.resource_provider_traits USING btree (resource_provider_id, trait_id);

CREATE INDEX resource_providers_parent_provider_id_idx ON public.resource_providers USING btree (parent_provider_id);

CREATE INDEX resource_providers_root_provider_id_idx ON public.resource_providers USING btree (root_provider_id);

CREATE UNIQUE INDEX uniq_services0compute_host ON public.services USING btree (host) WHERE (("binary")::text = 'nova-compute'::text);

CREATE INDEX usage_records_project_id_ended_at_idx ON public.usage_records USING btree (project_id, ended_at);

CREATE INDEX waiting_former_process_idx ON public.waiting USING btree (former_process) WHERE (former_process IS NOT NULL);

CREATE INDEX waiting_line_idx ON public.waiting USING btree (project_id, line, number) WHERE (line IS NOT NULL);

alter table doubtful_usages replica identity full;

alter table inventory_changes replica identity full;

alter table open_usage_records replica identity full;

alter table project_usages replica identity full;

alter table provider_changes replica identity full;

alter table provider_changes_horizon replica identity full;

alter table usage_counting replica identity full;

alter table usage_history replica identity full;

set check_function_bodies = off; -- they may call those behind them

CREATE OR REPLACE FUNCTION public.class_renamed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if exists (select from public.limits) then
    update public.limits set generation = generation + 1,
      resources = resources - old.name::text || jsonb_build_object(new.name, resources -> old.name::text)
      where jsonb_exists(resources, old.name::text);
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.doubt_usages(uuids text[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$begin
  if cardinality(uuids) = 0 then return; end if;
  if current_setting('placement.etags', true) = 'written' or exists (
    select from unnest(uuids) as u (uuid) where not exists (select from public.consumers c where c.uuid = u.uuid offset 0)
  ) then insert into public.doubtful_usages values (null);
  else insert into public.doubtful_usages select distinct project_id from public.consumers where uuid = any(uuids);
  end if;
end$function$;

CREATE OR REPLACE FUNCTION public.etag_aggregate_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  perform public.etag_parts('resource_provider_aggregates', array(
    select resource_provider_id from public.resource_provider_aggregates where aggregate_id = old.id));
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.etag_class_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into public.provider_changes (provider_id, whole, class_ids, parts)
    values (null, true, array[old.id, new.id], 2);
  perform public.etag_parts('inventories', array(
    select resource_provider_id from public.inventories where resource_class_id in (old.id, new.id)));
  perform public.etag_consumers(array(select consumer_id from public.allocations where resource_class_id in (old.id, new.id)));
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.etag_consumer_row()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  new.etag := case when new.uuid = old.uuid then public.etag_of_allocations(new) end;
  return new;
end$function$;

CREATE OR REPLACE FUNCTION public.etag_consumers(uuids text[])
 RETURNS void
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off'
AS $function$begin
  perform from public.consumers where uuid = any(uuids) order by uuid for update;
  update public.consumers c set etag = public.etag_of_allocations(c) where uuid = any(uuids);
end$function$;

CREATE OR REPLACE FUNCTION public.etag_doubted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if new.inventories is null then perform public.etag_parts('inventories', array[new.resource_provider_id]); end if;
  if new.traits is null then perform public.etag_parts('resource_provider_traits', array[new.resource_provider_id]); end if;
  if new.aggregates is null then perform public.etag_parts('resource_provider_aggregates', array[new.resource_provider_id]); end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.etag_inventory(i inventories)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$select '{"allocation_ratio":' || public.etag_number(i.allocation_ratio)
    || ',"max_unit":' || i.max_unit || ',"min_unit":' || i.min_unit || ',"reserved":' || i.reserved
    || ',"step_size":' || i.step_size || ',"total":' || i.total || '}'$function$;

CREATE OR REPLACE FUNCTION public.etag_inventory_row()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  new.etag := public.etag_of(public.etag_inventory(new));
  return new;
end$function$;

CREATE OR REPLACE FUNCTION public.etag_large_number(value double precision)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$select case when value < 0 then '-' else '' end
      || case when abs(value) < 1e21 then digits
        else left(digits, 1) || rtrim('.' || substr(rtrim(digits, '0'), 2), '.') || 'e+' || length(digits) - 1 end
    from (select greatest(0, floor(log(2, abs(value)::numeric))::integer - 60) as scale) as s,
      lateral (select (abs(value) / 2::double precision ^ scale)::bigint * 2::numeric ^ scale as exact) as e,
      generate_series(1, 17) as count,
      lateral (select round(exact, count - length(trunc(exact)::text)) as rounded) as r,
      lateral (select trunc(rounded)::text as digits) as d
    where rounded::double precision = abs(value) order by count limit 1$function$;

CREATE OR REPLACE FUNCTION public.etag_name(name text)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$select public.etag_of('{"name":' || to_json(name)::text || '}')$function$;

CREATE OR REPLACE FUNCTION public.etag_name_row()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  new.etag := public.etag_name(new.name);
  return new;
end$function$;

CREATE OR REPLACE FUNCTION public.etag_number(value double precision)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$select case
    when value = 0 or abs(value) >= 1e-6 and abs(value) < 4503599627370496 then trim_scale(value::text::numeric)::text
    when abs(value) < 1e-6 or abs(value) >= 1e300 then replace(value::text, 'e-0', 'e-')
    else public.etag_large_number(value) end$function$;

CREATE OR REPLACE FUNCTION public.etag_of(content text)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$select 'W/"' || encode(sha512(convert_to(content, 'UTF8')), 'hex') || '"'$function$;

CREATE OR REPLACE FUNCTION public.etag_of_aggregates(provider_id integer)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$begin
  return (select public.etag_of('[' || coalesce(string_agg(
      to_json(uuid)::text, ',' order by uuid collate "C"), '') || ']')
    from (
      select (select a.uuid from public.placement_aggregates a where a.id = m.aggregate_id) as uuid
      from public.resource_provider_aggregates m where m.resource_provider_id = provider_id
    ) as held);
end$function$;

CREATE OR REPLACE FUNCTION public.etag_of_allocations(c consumers)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$begin
  return (select public.etag_of('{"allocations":{'
      || string_agg(to_json(uuid)::text || ':{"resources":{' || resources || '}}', ',' order by uuid collate "C")
      || '},"consumer_type":' || to_json(coalesce((select t.name from public.consumer_types t where t.id = c.consumer_type_id), 'unknown'))::text
      || ',"project_id":' || (select to_json(p.external_id)::text from public.projects p where p.id = c.project_id)
      || ',"user_id":' || (select to_json(u.external_id)::text from public.users u where u.id = c.user_id) || '}')
    from (
      select (select p.uuid from public.resource_providers p where p.id = resource_provider_id) as uuid,
        string_agg(to_json(name)::text || ':' || used, ',' order by name collate "C") as resources
      from (
        select distinct on (a.resource_provider_id, a.resource_class_id) a.resource_provider_id, a.used,
          (select k.name from public.resource_classes k where k.id = a.resource_class_id) as name
        from (select id, resource_provider_id, resource_class_id, used from public.allocations where consumer_id = c.uuid offset 0) as a
        order by a.resource_provider_id, a.resource_class_id, a.id desc
      ) as last_ones
      where name is not null group by resource_provider_id
    ) as held where uuid is not null);
end$function$;

CREATE OR REPLACE FUNCTION public.etag_of_inventories(provider_id integer)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$begin
  return (select public.etag_of('{' || coalesce(string_agg(
      to_json(name)::text || ':' || content, ',' order by name collate "C"), '') || '}')
    from (
      select public.etag_inventory(i) as content, coalesce(
        (select c.name from public.resource_classes c where c.id = i.resource_class_id), 'unknown id ' || i.resource_class_id) as name
      from public.inventories i where i.resource_provider_id = provider_id
    ) as held);
end$function$;

CREATE OR REPLACE FUNCTION public.etag_of_provider(p resource_providers)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$begin
  return (select public.etag_of('{"name":' || to_json(coalesce(p.name, ''))::text
    || ',"parent_provider_uuid":' || coalesce(
      (select to_json(parent.uuid)::text from public.resource_providers parent where parent.id = p.parent_provider_id), 'null')
    || ',"uuid":' || to_json(p.uuid)::text || '}'));
end$function$;

CREATE OR REPLACE FUNCTION public.etag_of_traits(provider_id integer)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$begin
  return (select public.etag_of('[' || coalesce(string_agg(
      to_json(name)::text, ',' order by name collate "C"), '') || ']')
    from (
      select (select t.name from public.traits t where t.id = h.trait_id) as name
      from public.resource_provider_traits h where h.resource_provider_id = provider_id
    ) as held);
end$function$;

CREATE OR REPLACE FUNCTION public.etag_owner_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if tg_table_name = 'projects' then
    perform from public.consumers where project_id = new.id order by uuid for update;
    update public.consumers c set etag = public.etag_of_allocations(c) where project_id = new.id;
  elsif tg_table_name = 'users' then
    perform from public.consumers where user_id = new.id order by uuid for update;
    update public.consumers c set etag = public.etag_of_allocations(c) where user_id = new.id;
  else
    perform from public.consumers where consumer_type_id = new.id order by uuid for update;
    update public.consumers c set etag = public.etag_of_allocations(c) where consumer_type_id = new.id;
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.etag_parts(part text, ids integer[])
 RETURNS void
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off'
AS $function$begin
  insert into public.resource_provider_etags (resource_provider_id)
    select id from public.resource_providers where id = any(ids) order by id for key share on conflict do nothing;
  perform from public.resource_provider_etags where resource_provider_id = any(ids) order by resource_provider_id for update;
  if part = 'inventories' then
    update public.resource_provider_etags set inventories = public.etag_of_inventories(resource_provider_id)
      where resource_provider_id = any(ids);
  elsif part = 'resource_provider_traits' then
    update public.resource_provider_etags set traits = public.etag_of_traits(resource_provider_id) where resource_provider_id = any(ids);
  else
    update public.resource_provider_etags set aggregates = public.etag_of_aggregates(resource_provider_id)
      where resource_provider_id = any(ids);
  end if;
end$function$;

CREATE OR REPLACE FUNCTION public.etag_provider_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$declare
  ids integer[] := array[new.id];
begin
  insert into public.inventory_changes (provider_id) values (new.id);
  insert into public.resource_provider_etags (resource_provider_id) values (new.id) on conflict do nothing;
  if new.uuid <> old.uuid then
    ids := ids || array(select id from public.resource_providers where parent_provider_id = new.id);
    insert into public.provider_changes (provider_id, whole, uuid) values (new.id, true, old.uuid), (new.id, true, new.uuid);
  end if;
  perform from public.resource_provider_etags where resource_provider_id = any(ids) order by resource_provider_id for update;
  update public.resource_provider_etags e set provider = (
    select public.etag_of_provider(p) from public.resource_providers p where p.id = e.resource_provider_id
  ) where resource_provider_id = any(ids);
  if new.uuid <> old.uuid then
    perform public.etag_consumers(array(select consumer_id from public.allocations where resource_provider_id = new.id));
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.etag_provider_gone()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  delete from public.resource_provider_etags where resource_provider_id = old.id;
  perform public.etag_consumers(array(select consumer_id from public.allocations where resource_provider_id = old.id));
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.etag_provider_made()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into public.resource_provider_etags
    values (new.id, public.etag_of_provider(new), public.etag_of_inventories(new.id), public.etag_of_traits(new.id), public.etag_of_aggregates(new.id))
    on conflict (resource_provider_id) do update set provider = excluded.provider;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.etag_trait_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into public.provider_changes (provider_id, whole, class_ids, parts)
    values (null, true, array[new.id], 4);
  perform public.etag_parts('resource_provider_traits', array(
    select resource_provider_id from public.resource_provider_traits where trait_id = new.id));
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.etag_truncated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  update public.consumers set etag = null where etag is not null;
  delete from public.resource_provider_etags;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.former_generations(uuids text[])
 RETURNS json
 LANGUAGE plpgsql
AS $function$begin
  return (
    select json_object_agg(made.uuid, coalesce((select generations from public.former_consumers f where f.uuid = made.uuid), 0))
    from unnest(uuids) as made (uuid)
  );
end$function$;

CREATE OR REPLACE FUNCTION public.limits_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into public.provider_changes (provider_id, whole, parts) values (null, true, 64);
  insert into public.inventory_changes default values;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_allocations_deleted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into public.provider_changes (provider_id, whole, class_ids, used_deltas)
    select resource_provider_id, false, array_agg(resource_class_id), array_agg(delta)
    from (select resource_provider_id, resource_class_id, sum(-used)::bigint as delta from old_rows group by 1, 2) as moved where delta <> 0 group by resource_provider_id;
  if current_setting('placement.etags', true) is distinct from 'written' then
    perform public.etag_consumers(array(select consumer_id from old_rows));
  end if;
  if current_setting('placement.usages', true) is distinct from 'counted' and exists (select from public.usage_counting) then
    perform public.doubt_usages(array(select consumer_id from old_rows));
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_allocations_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into public.provider_changes (provider_id, whole, class_ids, used_deltas)
    select resource_provider_id, false, array_agg(resource_class_id), array_agg(delta)
    from (select resource_provider_id, resource_class_id, sum(used)::bigint as delta from new_rows group by 1, 2) as moved where delta <> 0 group by resource_provider_id;
  if current_setting('placement.etags', true) is distinct from 'written' then
    perform public.etag_consumers(array(select consumer_id from new_rows));
  end if;
  if current_setting('placement.usages', true) is distinct from 'counted' and exists (select from public.usage_counting) then
    perform public.doubt_usages(array(select consumer_id from new_rows));
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_allocations_updated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into public.provider_changes (provider_id, whole, class_ids, used_deltas)
    select resource_provider_id, false, array_agg(resource_class_id), array_agg(delta)
    from (select resource_provider_id, resource_class_id, sum(delta)::bigint as delta from
      (select resource_provider_id, resource_class_id, sum(used)::bigint as delta from new_rows group by 1, 2 union all select resource_provider_id, resource_class_id, sum(-used)::bigint as delta from old_rows group by 1, 2) as both_sides group by 1, 2) as moved where delta <> 0 group by resource_provider_id;
  if current_setting('placement.etags', true) is distinct from 'written' then
    perform public.etag_consumers(array(select consumer_id from new_rows union select consumer_id from old_rows));
  end if;
  if current_setting('placement.usages', true) is distinct from 'counted' and exists (select from public.usage_counting) then
    perform public.doubt_usages(array(select consumer_id from new_rows union select consumer_id from old_rows));
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_names_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into public.provider_changes (provider_id, whole, parts)
  values (null, true, case tg_table_name when 'traits' then 4 else 2 end);
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_provider_parts_deleted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into public.provider_changes (provider_id, whole, parts)
    select distinct resource_provider_id, true, case tg_table_name when 'inventories' then 18
      when 'resource_provider_traits' then 4 else 8 end from old_rows;
  if found then
    insert into public.inventory_changes (provider_id) select distinct resource_provider_id from old_rows;
    if current_setting('placement.etags', true) is distinct from 'providers' then
      perform public.etag_parts(tg_table_name, array(select distinct resource_provider_id from old_rows));
    end if;
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_provider_parts_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into public.provider_changes (provider_id, whole, parts)
    select distinct resource_provider_id, true, case tg_table_name when 'inventories' then 18
      when 'resource_provider_traits' then 4 else 8 end from new_rows;
  if found then
    insert into public.inventory_changes (provider_id) select distinct resource_provider_id from new_rows;
    if current_setting('placement.etags', true) is distinct from 'providers' then
      perform public.etag_parts(tg_table_name, array(select distinct resource_provider_id from new_rows));
    end if;
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_provider_parts_updated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if current_setting('placement.etags', true) = 'only' then return null; end if;
  if tg_table_name = 'inventories' then
    insert into public.provider_changes (provider_id, whole, parts)
      select distinct resource_provider_id, true, 2 + case when exists (
        select resource_provider_id, resource_class_id from new_rows
        except select resource_provider_id, resource_class_id from old_rows) then 16 else 0 end from (select resource_provider_id from old_rows union select resource_provider_id from new_rows) as rows;
  else
    insert into public.provider_changes (provider_id, whole, parts)
    select distinct resource_provider_id, true, case tg_table_name when 'inventories' then 18
      when 'resource_provider_traits' then 4 else 8 end from (select resource_provider_id from old_rows union select resource_provider_id from new_rows) as rows;
  end if;
  if found then
    insert into public.inventory_changes (provider_id) select distinct resource_provider_id from (select resource_provider_id from old_rows union select resource_provider_id from new_rows) as rows;
    if current_setting('placement.etags', true) is distinct from 'providers' then
      perform public.etag_parts(tg_table_name, array(select distinct resource_provider_id from (select resource_provider_id from old_rows union select resource_provider_id from new_rows) as rows));
    end if;
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_provider_rows_deleted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into public.provider_changes (provider_id, whole, uuid)
  select id, true, uuid from old_rows;
  insert into public.inventory_changes (provider_id) select id from old_rows;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_provider_rows_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into public.provider_changes (provider_id, whole, uuid)
  select id, true, uuid from new_rows;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_provider_rows_updated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if current_setting('placement.generations', true) is distinct from 'logged' then
    insert into public.provider_changes (provider_id, whole, parts)
    select n.id, (n.uuid, n.name, n.root_provider_id, n.parent_provider_id) is distinct from
      (o.uuid, o.name, o.root_provider_id, o.parent_provider_id),
      case when n.parent_provider_id is distinct from o.parent_provider_id then 33 else 1 end
    from new_rows n join old_rows o using (id);
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.log_truncated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  insert into public.provider_changes (provider_id, whole) values (null, false);
  insert into public.inventory_changes default values;
  if exists (select from public.usage_counting) then insert into public.doubtful_usages values (null); end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.lost_race()
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$begin
  raise exception 'A guarded row is not as it was when the statement began.'
    using errcode = 'serialization_failure';
end$function$;

CREATE OR REPLACE FUNCTION public.name_usage_records(ids integer[])
 RETURNS void
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off'
AS $function$declare
  uuids text[];
  at_end constant text := 'released';
begin
  perform from public.consumers where id = any(ids) order by uuid for no key update;
  uuids := array(select uuid from public.consumers c where id = any(ids) and exists (select from public.allocations a where a.consumer_id = c.uuid offset 0));
  if cardinality(uuids) = 0 then return; end if;
  insert into public.provider_changes (provider_id, whole, parts, consumer_ids, logged_at)
      select null, true, case at_end when 'term' then 128 + 512 else 128 end, case when cardinality(uuids) <= 2000 then uuids end,
        clock_timestamp();
  perform from public.open_usage_records where consumer_id = any(uuids) order by id for update;
  update public.open_usage_records o set name = c.name from (
    select uuid, (select name from public.consumer_names n where n.consumer_id = consumers.id) as name from public.consumers where id = any(ids)
  ) as c where o.consumer_id = any(uuids) and o.consumer_id = c.uuid and o.name is distinct from c.name;
end$function$;

CREATE OR REPLACE FUNCTION public.record_allocations_deleted()
 RETURNS trigger
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off'
AS $function$declare
  uuids text[];
  at_end text := case current_setting('placement.ended', true) when 'term' then 'term' else 'released' end;
  noted_count bigint;
  is_holding boolean;
begin
  if not exists (select from public.usage_history where until is null) then return null; end if;
  uuids := array(select distinct consumer_id from old_rows);
  if cardinality(uuids) = 0 then return null; end if;
  if coalesce(current_setting('placement.released_whole', true), '') = 'on' then
    with logged as (insert into public.provider_changes (provider_id, whole, parts, consumer_ids, logged_at)
      select null, true, case at_end when 'term' then 128 + 512 else 128 end, case when cardinality(uuids) <= 2000 then uuids end,
        clock_timestamp()),
      gone as (delete from public.open_usage_records where consumer_id = any(uuids) returning *),
      at as materialized (select greatest(clock_timestamp(), max(began_at)) as moment from gone)
      insert into public.usage_records (id, consumer_id, name, project_id, user_id,
        consumer_type_id, provider_uuid, provider_name, class_name, amount, began_at, ended_at, ended)
      select g.id, g.consumer_id, g.name, g.project_id, g.user_id, g.consumer_type_id, g.provider_uuid,
        coalesce((select name from public.resource_providers where id = g.resource_provider_id), g.provider_name),
        coalesce((select name from public.resource_classes where id = g.resource_class_id), g.class_name), g.amount, g.began_at, at.moment, at_end
      from gone g cross join at
      where g.began_at < at.moment and (g.begun_by is distinct from pg_current_xact_id() or g.began_at < now());
  elsif (select count(*) from public.consumers where uuid = any(uuids)) = cardinality(uuids) and not exists (
    select from unnest(uuids) as uuid where strpos(current_setting('placement.ended_' || (hashtext(uuid) & 255), true), uuid) > 0
  ) then
    with logged as (insert into public.provider_changes (provider_id, whole, parts, consumer_ids, logged_at)
      select null, true, case at_end when 'term' then 128 + 512 else 128 end, case when cardinality(uuids) <= 2000 then uuids end,
        clock_timestamp()),
      held as materialized (select exists (select from public.allocations where consumer_id = any(uuids)) as is_any),
      gone as (
        delete from public.open_usage_records where consumer_id = any(uuids) and not (select is_any from held) returning *
      ),
      at as materialized (select greatest(clock_timestamp(), max(began_at)) as moment from gone),
      ended as (
        insert into public.usage_records (id, consumer_id, name, project_id, user_id,
        consumer_type_id, provider_uuid, provider_name, class_name, amount, began_at, ended_at, ended)
      select g.id, g.consumer_id, g.name, g.project_id, g.user_id, g.consumer_type_id, g.provider_uuid,
        coalesce((select name from public.resource_providers where id = g.resource_provider_id), g.provider_name),
        coalesce((select name from public.resource_classes where id = g.resource_class_id), g.class_name), g.amount, g.began_at, at.moment, at_end
      from gone g cross join at
      where g.began_at < at.moment and (g.begun_by is distinct from pg_current_xact_id() or g.began_at < now())
        returning id, consumer_id, ended_at
      )
      select (select count(set_config(setting, coalesce(current_setting(setting, true), '') || list, true)) from (
        select 'placement.ended_' || (hashtext(consumer_id) & 255) as setting, string_agg(chr(1) || id || '@' || (extract(epoch from ended_at) * 1000000)::bigint || '=' || consumer_id, '') as list from ended group by 1
      ) as noted), (select is_any from held) into noted_count, is_holding;
    -- Another transaction may have begun a record meanwhile.
    if is_holding or exists (select from public.open_usage_records where consumer_id = any(uuids)) then perform public.settle_usage_records(uuids); end if;
  else
    perform public.settle_usage_records(uuids);
    if exists (select from public.usage_history where not is_complete) then
      insert into public.provider_changes (provider_id, whole, parts, consumer_ids, logged_at)
      select null, true, case at_end when 'term' then 128 + 512 else 128 end, case when cardinality(uuids) <= 2000 then uuids end,
        clock_timestamp();
    end if;
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.record_allocations_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off'
AS $function$declare
  uuids text[];
  at_end constant text := 'released';
begin
  if not exists (select from public.usage_history where until is null) then return null; end if;
  uuids := array(select distinct consumer_id from new_rows);
  if cardinality(uuids) = 0 then return null; end if;
  if not exists (
    select from unnest(uuids) as uuid where strpos(current_setting('placement.ended_' || (hashtext(uuid) & 255), true), uuid) > 0
  ) and not exists (select from public.open_usage_records where consumer_id = any(uuids))
    and (select count(*) from public.consumers where uuid = any(uuids)) = cardinality(uuids) then
    with logged as (insert into public.provider_changes (provider_id, whole, parts, consumer_ids, logged_at)
      select null, true, case at_end when 'term' then 128 + 512 else 128 end, case when cardinality(uuids) <= 2000 then uuids end,
        clock_timestamp())
      insert into public.open_usage_records (consumer_id, resource_provider_id, resource_class_id, project_id, user_id, consumer_type_id, amount,
        name, provider_uuid, provider_name, class_name, began_at, begun_by)
      select c.uuid, h.resource_provider_id, h.resource_class_id, c.project_id, c.user_id, c.consumer_type_id, h.amount, c.name, p.uuid,
        p.name, (select name from public.resource_classes where id = h.resource_class_id), clock_timestamp(), pg_current_xact_id()
      from (
        select uuid, project_id, user_id, consumer_type_id, (select name from public.consumer_names where consumer_id = consumers.id) as name
        from public.consumers where uuid = any(uuids) offset 0
      ) as c cross join lateral (
        select resource_provider_id, resource_class_id, sum(used) as amount from (select resource_provider_id, resource_class_id, used from public.allocations where consumer_id = c.uuid offset 0) as a group by 1, 2 offset 0
      ) as h
      left join lateral (select uuid, name from public.resource_providers where id = h.resource_provider_id offset 0) as p on true;
  else
    perform public.settle_usage_records(uuids);
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.record_allocations_updated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if exists (select from public.usage_history where until is null) then
    perform public.settle_usage_records(array(select consumer_id from old_rows union select consumer_id from new_rows));
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.record_consumers_deleted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if exists (select from public.usage_history where until is null) then
    if not coalesce(current_setting('placement.released_whole', true), '') = 'on' then
      perform public.settle_usage_records(array(
        select uuid from old_rows d where exists (select from public.allocations a where a.consumer_id = d.uuid offset 0)
      ));
    end if;
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.record_consumers_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if exists (select from public.usage_history where until is null) then
    if exists (select from public.open_usage_records where project_id is null) then
      perform public.settle_usage_records(array(
        select uuid from new_rows n
        where exists (select from public.open_usage_records o where o.consumer_id = n.uuid and o.project_id is null offset 0)
      ));
    end if;
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.record_names_deleted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if exists (select from public.usage_history where until is null) then
    perform public.name_usage_records(array(select consumer_id from old_rows));
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.record_names_inserted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if exists (select from public.usage_history where until is null) then
    perform public.name_usage_records(array(select consumer_id from new_rows));
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.record_names_truncated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if exists (select from public.usage_history where until is null) then
    insert into public.provider_changes (provider_id, whole, parts) values (null, true, 128);
    update public.open_usage_records set name = null where name is not null;
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.record_names_updated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if exists (select from public.usage_history where until is null) then
    perform public.name_usage_records(array(select consumer_id from old_rows union select consumer_id from new_rows));
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.record_owner_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if exists (select from public.usage_history where until is null) then
    perform public.settle_usage_records(array[old.uuid, new.uuid]::text[]);
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.record_truncated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if exists (select from public.usage_history where until is null) then
    perform public.settle_usage_records(array(select consumer_id from public.open_usage_records union select consumer_id from public.allocations));
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.renamed_classes(ids integer[], names text[])
 RETURNS integer[]
 LANGUAGE plpgsql
AS $function$begin
  return array(
    select k.id from unnest(ids, names) as k (id, name)
    where not exists (select from public.resource_classes r where r.id = k.id and r.name = k.name)
  );
end$function$;

CREATE OR REPLACE FUNCTION public.settle_usage_records(uuids text[])
 RETURNS void
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off'
AS $function$declare
  unrecorded integer[];
  has_own boolean;
  moment timestamptz;
  past_ids bigint[];
  past_ends timestamptz[];
  at_end text := case current_setting('placement.ended', true) when 'term' then 'term' else 'released' end;
  gone_ids bigint[];
  gone_count bigint;
  ended_ids bigint[] := '{}';
  noted_count bigint;
  consumer_ids text[];
  provider_ids integer[];
  class_ids integer[];
  project_ids integer[];
  user_ids integer[];
  type_ids integer[];
  amounts bigint[];
  record_ids integer[];
begin
  if cardinality(uuids) = 0 then return; end if;
  unrecorded := array(
    select distinct hashtext(u.id) from unnest(uuids) as u (id) where not exists (select from public.consumers where uuid = u.id) order by 1
  );
  if cardinality(unrecorded) > 100 then
    perform pg_advisory_xact_lock(1450013, 0);
  elsif cardinality(unrecorded) > 0 then
    perform pg_advisory_xact_lock_shared(1450013, 0), pg_advisory_xact_lock(1450014, each) from unnest(unrecorded) as each;
  end if;
  select coalesce(bool_or(begun_by = pg_current_xact_id()), false), greatest(clock_timestamp(), max(began_at)) into has_own, moment
    from (select began_at, begun_by from public.open_usage_records where consumer_id = any(uuids) order by id for update) as o;
  select string_to_array(string_agg(ids, ','), ','), array_agg(consumer_id) filter (where held is not null),
      array_agg(resource_provider_id) filter (where held is not null), array_agg(resource_class_id) filter (where held is not null),
      array_agg(project_id) filter (where held is not null), array_agg(user_id) filter (where held is not null),
      array_agg(consumer_type_id) filter (where held is not null), array_agg(held) filter (where held is not null),
      array_agg(record_id) filter (where held is not null)
    into gone_ids, consumer_ids, provider_ids, class_ids, project_ids, user_ids, type_ids, amounts, record_ids
    from (
      select consumer_id, resource_provider_id, resource_class_id, project_id, user_id, consumer_type_id, sum(held) as held,
        string_agg(id::text, ',') as ids, max(record_id) as record_id
      from (
        select a.consumer_id, a.resource_provider_id, a.resource_class_id, c.project_id, c.user_id, c.consumer_type_id, a.used as held,
          null::bigint as amount, null::bigint as id, c.id as record_id
        from public.allocations a left join lateral (
          select id, project_id, user_id, consumer_type_id from public.consumers where uuid = a.consumer_id offset 0
        ) as c on true
        where a.consumer_id = any(uuids)
        union all
        select consumer_id, resource_provider_id, resource_class_id, project_id, user_id, consumer_type_id, null, amount, id, null
        from public.open_usage_records where consumer_id = any(uuids)
      ) as both_sides
      group by 1, 2, 3, 4, 5, 6 having sum(held) is distinct from sum(amount)
    ) as changed;
  if gone_ids is null and consumer_ids is null then return; end if;
  insert into public.provider_changes (provider_id, whole, parts, consumer_ids, logged_at)
      select null, true, case at_end when 'term' then 128 + 512 else 128 end, case when cardinality(uuids) <= 2000 then uuids end,
        clock_timestamp();
  if not not exists (
    select from unnest(uuids) as uuid where strpos(current_setting('placement.ended_' || (hashtext(uuid) & 255), true), uuid) > 0
  ) then select array_agg(split_part(key, '@', 1)::bigint),
      array_agg(distinct timestamptz 'epoch' + split_part(key, '@', 2)::bigint * interval '1 microsecond')
    into past_ids, past_ends
    from (select distinct 'placement.ended_' || (hashtext(uuid) & 255) as setting from unnest(uuids) as uuid) as s
    cross join lateral unnest(string_to_array(current_setting(setting, true), chr(1))) as entry
    cross join lateral (select split_part(entry, '=', 1) as key, substr(entry, strpos(entry, '=') + 1) as consumer_id) as parts
    join unnest(uuids) as u (id) on u.id = consumer_id
    where key ~ '^[0-9]+@[0-9]+$'; end if;
  if gone_ids is not null then
    with gone as (
      delete from public.open_usage_records where consumer_id = any(uuids) and id in (select unnest(gone_ids)) returning *
    ),
    begun as materialized (
      select * from unnest(consumer_ids, provider_ids, class_ids, project_ids, user_ids, type_ids)
        as b (consumer_id, resource_provider_id, resource_class_id, project_id, user_id, consumer_type_id)
    ),
    owners as (select distinct consumer_id, project_id, user_id, consumer_type_id from begun),
    places as (select consumer_id, resource_class_id, array_agg(resource_provider_id) as provider_ids from begun group by 1, 2),
    ended as (
      insert into public.usage_records (id, consumer_id, name, project_id, user_id,
        consumer_type_id, provider_uuid, provider_name, class_name, amount, began_at, ended_at, ended)
      select g.id, g.consumer_id, g.name, g.project_id, g.user_id, g.consumer_type_id, g.provider_uuid,
        coalesce((select name from public.resource_providers where id = g.resource_provider_id), g.provider_name),
        coalesce((select name from public.resource_classes where id = g.resource_class_id), g.class_name), g.amount, g.began_at, moment, case
          when o.consumer_id is not null and (o.project_id, o.user_id, o.consumer_type_id) is distinct from (g.project_id, g.user_id, g.consumer_type_id) then 'owner'
          when g.resource_provider_id = any(l.provider_ids) then 'rewritten'
          when l.consumer_id is not null then 'moved'
          else at_end end
      from gone g left join owners o on o.consumer_id = g.consumer_id
      left join places l on l.consumer_id = g.consumer_id and l.resource_class_id = g.resource_class_id
      where g.began_at < moment and (g.begun_by is distinct from pg_current_xact_id() or g.began_at < now())
      returning id, consumer_id, ended_at
    )
    select (select count(*) from gone), array(select id from ended), (select count(set_config(setting, coalesce(current_setting(setting, true), '') || list, true)) from (
        select 'placement.ended_' || (hashtext(consumer_id) & 255) as setting, string_agg(chr(1) || id || '@' || (extract(epoch from ended_at) * 1000000)::bigint || '=' || consumer_id, '') as list from ended group by 1
      ) as noted) into gone_count, ended_ids, noted_count;
    if gone_count <> cardinality(gone_ids) then perform public.lost_race(); end if;
  end if;
  if consumer_ids is not null then
    insert into public.open_usage_records (consumer_id, resource_provider_id, resource_class_id, project_id, user_id, consumer_type_id, amount, name,
      provider_uuid, provider_name, class_name, began_at, begun_by)
    select b.consumer_id, provider_id, class_id, project_id, user_id, type_id, amount, n.name, p.uuid, p.name, r.name, moment, pg_current_xact_id()
    from unnest(consumer_ids, provider_ids, class_ids, project_ids, user_ids, type_ids, amounts, record_ids)
      as b (consumer_id, provider_id, class_id, project_id, user_id, type_id, amount, record_id)
    left join lateral (select name from public.consumer_names where consumer_id = b.record_id offset 0) as n on true
    left join lateral (select uuid, name from public.resource_providers where id = b.provider_id offset 0) as p on true
    left join lateral (select name from public.resource_classes where id = b.class_id offset 0) as r on true;
  end if;
  if has_own or past_ids is not null then
    past_ids := coalesce(past_ids, '{}') || ended_ids;
    past_ends := coalesce(past_ends, '{}') || moment;
    with past as materialized (select * from public.usage_records
      where ended_at = any(past_ends) and id = any(past_ids) and consumer_id = any(uuids)
    ),
    own as materialized (
      select * from public.open_usage_records where consumer_id = any(uuids) and begun_by = pg_current_xact_id()
    ),
    again as materialized (
      select o.id as own_id, max(p.id) as id, min(p.began_at) as began_at
      from own o join past p on p.consumer_id = o.consumer_id and p.provider_uuid = o.provider_uuid and p.class_name = o.class_name
        and p.amount = o.amount and not (p.project_id, p.user_id, p.consumer_type_id) is distinct from (o.project_id, o.user_id, o.consumer_type_id)
      group by o.id having count(*) = 1
    ),
    next as materialized (select * from own where id not in (select own_id from again)),
    left_over as materialized (select * from past where id not in (select id from again)),
    owners as (select distinct consumer_id, project_id, user_id, consumer_type_id from next),
    places as (select consumer_id, class_name, array_agg(provider_uuid) as provider_uuids from next group by 1, 2),
    reasons as (
      select p.ended_at, p.id, case
        when o.consumer_id is not null and (o.project_id, o.user_id, o.consumer_type_id) is distinct from (p.project_id, p.user_id, p.consumer_type_id) then 'owner'
        when p.provider_uuid = any(l.provider_uuids) then 'rewritten'
        when l.consumer_id is not null then 'moved'
        else at_end end as ended
      from left_over p left join owners o on o.consumer_id = p.consumer_id
      left join places l on l.consumer_id = p.consumer_id and l.class_name = p.class_name
    ),
    told as (
      update public.usage_records u set ended = r.ended from reasons r where u.ended_at = r.ended_at and u.id = r.id and u.ended is distinct from r.ended
    ),
    removed as (delete from public.usage_records where ended_at = any(past_ends) and id in (select id from again)),
    beginnings as (
      select o.id, coalesce(a.id, o.id) as new_id, coalesce(a.began_at, s.ended_at, l.ended_at, o.began_at) as began_at, a.id is null as is_own
      from own o left join again a on a.own_id = o.id
      left join (select consumer_id, provider_uuid, class_name, max(ended_at) as ended_at from left_over group by 1, 2, 3) as s
        on s.consumer_id = o.consumer_id and s.provider_uuid = o.provider_uuid and s.class_name = o.class_name
      left join (select consumer_id, class_name, max(ended_at) as ended_at from left_over group by 1, 2) as l
        on l.consumer_id = o.consumer_id and l.class_name = o.class_name
    ),
    shifted as (
      update public.open_usage_records o set id = b.new_id, began_at = b.began_at, begun_by = case when b.is_own then o.begun_by end
      from beginnings b
      where o.consumer_id = any(uuids) and o.id = b.id and (b.new_id, b.began_at) is distinct from (o.id, o.began_at)
    )
    select count(*) into gone_count from again;
  end if;
end$function$;

CREATE OR REPLACE FUNCTION public.terms_gone()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  delete from public.consumer_terms where consumer_id = any(array(select id from old_rows));
  if exists (select from public.consumer_names where consumer_id = any(array(select id from old_rows))) then
    delete from public.consumer_names where consumer_id = any(array(select id from old_rows));
  end if;
  if current_setting('placement.former_consumers', true) is distinct from 'none' then
    insert into public.former_consumers as f (uuid, generations) select uuid, greatest(generation, 0)::bigint + 1 from old_rows
      on conflict (uuid) do update set generations = f.generations + excluded.generations, removed_at = excluded.removed_at;
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.terms_truncated()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  delete from public.consumer_terms;
  delete from public.consumer_names;
  delete from public.former_consumers;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.usages_moved()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if current_setting('placement.usages', true) is distinct from 'counted' and exists (select from public.usage_counting) then
    insert into public.doubtful_usages values (old.project_id), (new.project_id);
    if new.uuid <> old.uuid then insert into public.doubtful_usages values (null); end if;
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.usages_of_deleted_records()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if current_setting('placement.usages', true) is distinct from 'counted' and exists (select from public.usage_counting) then
    insert into public.doubtful_usages select null::integer where exists (
      select from old_rows r where exists (select from public.allocations a where a.consumer_id = r.uuid offset 0));
  end if;
  return null;
end$function$;

CREATE OR REPLACE FUNCTION public.usages_of_made_records()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$begin
  if current_setting('placement.usages', true) is distinct from 'counted' and exists (select from public.usage_counting) then
    insert into public.doubtful_usages select distinct project_id from new_rows union all select null::integer where exists (
      select from new_rows r where exists (select from public.allocations a where a.consumer_id = r.uuid offset 0));
  end if;
  return null;
end$function$;

CREATE TRIGGER etag_truncate AFTER TRUNCATE ON public.allocations FOR EACH STATEMENT EXECUTE FUNCTION etag_truncated();

CREATE TRIGGER log_delete AFTER DELETE ON public.allocations REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_allocations_deleted();

CREATE TRIGGER log_insert AFTER INSERT ON public.allocations REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_allocations_inserted();

CREATE TRIGGER log_truncate AFTER TRUNCATE ON public.allocations FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER log_update AFTER UPDATE ON public.allocations REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_allocations_updated();

CREATE TRIGGER usage_delete AFTER DELETE ON public.allocations REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION record_allocations_deleted();

CREATE TRIGGER usage_insert AFTER INSERT ON public.allocations REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION record_allocations_inserted();

CREATE TRIGGER usage_truncate AFTER TRUNCATE ON public.allocations FOR EACH STATEMENT EXECUTE FUNCTION record_truncated();

CREATE TRIGGER usage_update AFTER UPDATE ON public.allocations REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION record_allocations_updated();

CREATE TRIGGER usage_delete AFTER DELETE ON public.consumer_names REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION record_names_deleted();

CREATE TRIGGER usage_insert AFTER INSERT ON public.consumer_names REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION record_names_inserted();

CREATE TRIGGER usage_truncate AFTER TRUNCATE ON public.consumer_names FOR EACH STATEMENT EXECUTE FUNCTION record_names_truncated();

CREATE TRIGGER usage_update AFTER UPDATE ON public.consumer_names REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION record_names_updated();

CREATE TRIGGER etag_changed AFTER UPDATE OF name ON public.consumer_types FOR EACH ROW EXECUTE FUNCTION etag_owner_changed();

CREATE TRIGGER etag_made BEFORE INSERT ON public.consumers FOR EACH ROW WHEN ((new.etag IS NULL)) EXECUTE FUNCTION etag_consumer_row();

CREATE TRIGGER etag_row BEFORE UPDATE ON public.consumers FOR EACH ROW WHEN (((NOT ((new.etag)::text IS DISTINCT FROM (old.etag)::text)) AND (((new.uuid)::text IS DISTINCT FROM (old.uuid)::text) OR (new.project_id IS DISTINCT FROM old.project_id) OR (new.user_id IS DISTINCT FROM old.user_id) OR (new.consumer_type_id IS DISTINCT FROM old.consumer_type_id)))) EXECUTE FUNCTION etag_consumer_row();

CREATE TRIGGER term_gone AFTER DELETE ON public.consumers REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION terms_gone();

CREATE TRIGGER term_truncate AFTER TRUNCATE ON public.consumers FOR EACH STATEMENT EXECUTE FUNCTION terms_truncated();

CREATE TRIGGER usage_delete AFTER DELETE ON public.consumers REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION record_consumers_deleted();

CREATE TRIGGER usage_insert AFTER INSERT ON public.consumers REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION record_consumers_inserted();

CREATE TRIGGER usage_owner AFTER UPDATE OF uuid, project_id, user_id, consumer_type_id ON public.consumers FOR EACH ROW WHEN (((old.project_id IS DISTINCT FROM new.project_id) OR (old.user_id IS DISTINCT FROM new.user_id) OR (old.consumer_type_id IS DISTINCT FROM new.consumer_type_id) OR ((old.uuid)::text IS DISTINCT FROM (new.uuid)::text))) EXECUTE FUNCTION record_owner_changed();

CREATE TRIGGER usage_truncate AFTER TRUNCATE ON public.consumers FOR EACH STATEMENT EXECUTE FUNCTION record_truncated();

CREATE TRIGGER usages_deleted AFTER DELETE ON public.consumers REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION usages_of_deleted_records();

CREATE TRIGGER usages_made AFTER INSERT ON public.consumers REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usages_of_made_records();

CREATE TRIGGER usages_moved AFTER UPDATE OF uuid, project_id, consumer_type_id ON public.consumers FOR EACH ROW WHEN ((((old.uuid)::text IS DISTINCT FROM (new.uuid)::text) OR (old.project_id IS DISTINCT FROM new.project_id) OR (old.consumer_type_id IS DISTINCT FROM new.consumer_type_id))) EXECUTE FUNCTION usages_moved();

CREATE TRIGGER etag_row BEFORE INSERT OR UPDATE OF total, reserved, min_unit, max_unit, step_size, allocation_ratio ON public.inventories FOR EACH ROW WHEN ((current_setting('placement.etags'::text, true) IS DISTINCT FROM 'providers'::text)) EXECUTE FUNCTION etag_inventory_row();

CREATE TRIGGER etag_truncate AFTER TRUNCATE ON public.inventories FOR EACH STATEMENT EXECUTE FUNCTION etag_truncated();

CREATE TRIGGER log_delete AFTER DELETE ON public.inventories REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_deleted();

CREATE TRIGGER log_insert AFTER INSERT ON public.inventories REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_inserted();

CREATE TRIGGER log_truncate AFTER TRUNCATE ON public.inventories FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER log_update AFTER UPDATE ON public.inventories REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_updated();

CREATE TRIGGER limits_changed AFTER INSERT OR DELETE OR UPDATE OR TRUNCATE ON public.limits FOR EACH STATEMENT EXECUTE FUNCTION limits_changed();

CREATE TRIGGER etag_changed AFTER UPDATE OF uuid ON public.placement_aggregates FOR EACH ROW EXECUTE FUNCTION etag_aggregate_changed();

CREATE TRIGGER etag_gone AFTER DELETE ON public.placement_aggregates FOR EACH ROW EXECUTE FUNCTION etag_aggregate_changed();

CREATE TRIGGER etag_truncate AFTER TRUNCATE ON public.placement_aggregates FOR EACH STATEMENT EXECUTE FUNCTION etag_truncated();

CREATE TRIGGER log_change AFTER DELETE OR UPDATE ON public.placement_aggregates FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER log_truncate AFTER TRUNCATE ON public.placement_aggregates FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER etag_changed AFTER UPDATE OF external_id ON public.projects FOR EACH ROW EXECUTE FUNCTION etag_owner_changed();

CREATE TRIGGER class_renamed AFTER UPDATE OF name ON public.resource_classes FOR EACH ROW WHEN (((old.name)::text IS DISTINCT FROM (new.name)::text)) EXECUTE FUNCTION class_renamed();

CREATE TRIGGER etag_changed AFTER INSERT OR DELETE OR UPDATE OF id, name ON public.resource_classes FOR EACH ROW EXECUTE FUNCTION etag_class_changed();

CREATE TRIGGER etag_row BEFORE INSERT OR UPDATE OF name ON public.resource_classes FOR EACH ROW WHEN (((new.name)::text ~~ 'CUSTOM\_%'::text)) EXECUTE FUNCTION etag_name_row();

CREATE TRIGGER etag_truncate AFTER TRUNCATE ON public.resource_classes FOR EACH STATEMENT EXECUTE FUNCTION etag_truncated();

CREATE TRIGGER log_change AFTER INSERT OR DELETE OR UPDATE ON public.resource_classes FOR EACH STATEMENT EXECUTE FUNCTION log_names_changed();

CREATE TRIGGER log_truncate AFTER TRUNCATE ON public.resource_classes FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER etag_truncate AFTER TRUNCATE ON public.resource_provider_aggregates FOR EACH STATEMENT EXECUTE FUNCTION etag_truncated();

CREATE TRIGGER log_delete AFTER DELETE ON public.resource_provider_aggregates REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_deleted();

CREATE TRIGGER log_insert AFTER INSERT ON public.resource_provider_aggregates REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_inserted();

CREATE TRIGGER log_truncate AFTER TRUNCATE ON public.resource_provider_aggregates FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER log_update AFTER UPDATE ON public.resource_provider_aggregates REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_updated();

CREATE TRIGGER etag_doubted AFTER UPDATE OF inventories, traits, aggregates ON public.resource_provider_etags FOR EACH ROW WHEN ((((new.inventories IS NULL) AND (old.inventories IS NOT NULL)) OR ((new.traits IS NULL) AND (old.traits IS NOT NULL)) OR ((new.aggregates IS NULL) AND (old.aggregates IS NOT NULL)))) EXECUTE FUNCTION etag_doubted();

CREATE TRIGGER etag_truncate AFTER TRUNCATE ON public.resource_provider_traits FOR EACH STATEMENT EXECUTE FUNCTION etag_truncated();

CREATE TRIGGER log_delete AFTER DELETE ON public.resource_provider_traits REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_deleted();

CREATE TRIGGER log_insert AFTER INSERT ON public.resource_provider_traits REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_inserted();

CREATE TRIGGER log_truncate AFTER TRUNCATE ON public.resource_provider_traits FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER log_update AFTER UPDATE ON public.resource_provider_traits REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_parts_updated();

CREATE TRIGGER etag_changed AFTER UPDATE OF uuid, name, parent_provider_id ON public.resource_providers FOR EACH ROW WHEN ((((new.uuid)::text IS DISTINCT FROM (old.uuid)::text) OR ((new.name)::text IS DISTINCT FROM (old.name)::text) OR (new.parent_provider_id IS DISTINCT FROM old.parent_provider_id))) EXECUTE FUNCTION etag_provider_changed();

CREATE TRIGGER etag_gone AFTER DELETE ON public.resource_providers FOR EACH ROW EXECUTE FUNCTION etag_provider_gone();

CREATE TRIGGER etag_made AFTER INSERT ON public.resource_providers FOR EACH ROW WHEN ((current_setting('placement.etags'::text, true) IS DISTINCT FROM 'providers'::text)) EXECUTE FUNCTION etag_provider_made();

CREATE TRIGGER etag_truncate AFTER TRUNCATE ON public.resource_providers FOR EACH STATEMENT EXECUTE FUNCTION etag_truncated();

CREATE TRIGGER log_delete AFTER DELETE ON public.resource_providers REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_rows_deleted();

CREATE TRIGGER log_insert AFTER INSERT ON public.resource_providers REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_rows_inserted();

CREATE TRIGGER log_truncate AFTER TRUNCATE ON public.resource_providers FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER log_update AFTER UPDATE ON public.resource_providers REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION log_provider_rows_updated();

CREATE TRIGGER etag_changed AFTER UPDATE OF name ON public.traits FOR EACH ROW EXECUTE FUNCTION etag_trait_changed();

CREATE TRIGGER etag_row BEFORE INSERT OR UPDATE OF name ON public.traits FOR EACH ROW WHEN (((new.name)::text ~~ 'CUSTOM\_%'::text)) EXECUTE FUNCTION etag_name_row();

CREATE TRIGGER log_change AFTER INSERT OR DELETE OR UPDATE ON public.traits FOR EACH STATEMENT EXECUTE FUNCTION log_names_changed();

CREATE TRIGGER log_truncate AFTER TRUNCATE ON public.traits FOR EACH STATEMENT EXECUTE FUNCTION log_truncated();

CREATE TRIGGER limits_changed AFTER INSERT OR DELETE OR TRUNCATE ON public.usage_counting FOR EACH STATEMENT EXECUTE FUNCTION limits_changed();

CREATE TRIGGER etag_changed AFTER UPDATE OF external_id ON public.users FOR EACH ROW EXECUTE FUNCTION etag_owner_changed();
