-- How claims of new consumers are written: made from write_claims.ts by test/claims/usual_statement.test.ts.

with consumer as materialized (
with project as materialized (select id, external_id from projects where external_id = any($1::text[])),
  owner as materialized (select id, external_id from users where external_id = any($2::text[]))
select c.*, (select id from project where external_id = c.project_name) as project_id,
  (select id from owner where external_id = c.user_name) as user_id,
  (select id from consumer_types where name = c.type_name) as type_id
from unnest($3::integer[], $4::text[], $5::integer[],
  $6::boolean[], $7::boolean[],
  $8::text[], $9::text[],
  $10::text[], $11::text[],
  $12::integer[]
) as c (claim, uuid, generation, has_old, emptied, project_name, user_name, type_name, etag, record_id)),
allocation as (select * from unnest($13::integer[], $14::text[],
$15::integer[], $16::integer[], $17::integer[]
) as a (claim, consumer_uuid, provider_id, class_id, used)),
locked_provider as materialized (
  select id, coalesce(generation, 0) as generation from resource_providers where id = any($18::integer[])
    and (select set_config('lock_timeout', $19, true)) is not null
  order by id for no key update
),
guard as materialized (
  select g.*, p.generation as present from (select * from unnest($20::integer[], $21::integer[],
$22::integer[], $23::integer[]
) as g (claim, provider_id, generation, bump)) as g left join locked_provider p on p.id = g.provider_id
),
lost as materialized (
  select claim, 'provider' as what from guard
  where present is null or (select concat_ws(' ', extract(epoch from pg_postmaster_start_time()), case when current_setting('server_version_num')::integer >= 150000
  then extract(epoch from pg_stat_get_bgwriter_stat_reset_time()) end, 'provider_changes'::regclass::oid) <> $24)
    or (provider_id = any(array(select provider_id from inventory_changes where xid >= $25::xid8 and xid < pg_snapshot_xmax(pg_current_snapshot())))) is not false
    or present <> generation
  union all
  select claim, 'consumer' from consumer where generation is null and not has_old
    and exists (select from allocations where consumer_id = consumer.uuid)
  union all
  select claim, 'owner' from consumer where not emptied
    and (project_id is null or user_id is null or (type_name is not null and type_id is null))
),
won as (select * from consumer where claim <> all(array(select claim from lost))),
to_bump as materialized (
  select provider_id, present, sum(bump)::integer as bump from guard where claim <> all(array(select claim from lost)) group by 1, 2
),
bumped as (
  update resource_providers p set generation = ((coalesce(p.generation, 0)::bigint + g.bump) % 2147483648)::integer, updated_at = (now() at time zone 'utc')
  from to_bump g where p.id = g.provider_id and coalesce(p.generation, 0) = g.present
  returning p.id, p.generation
),
created as (
  insert into consumers (uuid, project_id, user_id, consumer_type_id, generation, created_at, etag)
  select uuid, project_id, user_id, type_id, 1, (now() at time zone 'utc'), etag
  from won where generation is null and not (emptied and has_old)
  order by uuid collate "C" -- so that two statements that make the same ones do not wait for each other in a circle
),
inserted as (
  insert into allocations (resource_provider_id, resource_class_id, consumer_id, used, created_at)
  select provider_id, class_id, consumer_uuid, used, (now() at time zone 'utc')
  from allocation where claim <> all(array(select claim from lost))
)
select pg_current_xact_id()::text as xid, lost.claim, lost.what,
  exists (select from guard where present <> generation) as "isContested"
from (select set_config('placement.etags', 'written', true), set_config('placement.generations', 'logged', true)) as settings left join lost on true
where
  case when (select count(*) from bumped) = (select count(*) from to_bump)
  then true else lost_race() end;
