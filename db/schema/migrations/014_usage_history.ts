import { type Kysely, sql } from 'kysely';
import { lockTogether } from '../brief_locks.ts';
import { qualifyNames } from '../qualified_names.ts';

/**
 * The history of usages: a record for each time that a consumer held an amount of one class at one provider.
 *
 * - `usage_history` has a row while the history is on. `is_complete`: the allocations from before the switch are recorded, too. With
 *   `until` it was switched off then: triggers record nothing more, and the open records are being closed as of that time.
 * - `open_usage_records`: what is held now. In any one snapshot they add up to the allocations of that snapshot, by consumer, provider,
 *   class and owner. The owner is null for allocations without a consumer record. `provider_uuid` and the names are as they were at the
 *   beginning. `begun_by` is the transaction that began the record.
 * - `usage_records`: what was held. Rows are added, and removed when they are old; only the transaction that has ended a record may change
 *   it. `ended` says why: `released`, `rewritten` (another amount at the same provider), `moved` (the same class at another provider),
 *   `term`, `owner`, or null where the history was switched off.
 *
 * Triggers write all of it, whichever program writes allocations and consumers. They do not read what a statement did, but compare what its
 * consumers hold with their open records: so it does not matter in which order the triggers of a statement fire, nor how often.
 *
 * The change log names consumers that may have changed, for clients that follow them (GET /changes): a row has them in `consumer_ids`, the
 * bit 128 in `parts`, and the bit 512 if a term had expired. It is logged while their records are locked, so that of two rows about the
 * same consumer the later one by `logged_at` is of the later write. One that has ended is not logged again when its record is made, written
 * or named without allocations, so the last row tells why it ended. Without `consumer_ids` it is about all consumers, as where the history
 * is switched.
 *
 * It locks the tables of allocations, consumers and names only, and in the end.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table usage_history (
    since timestamptz not null,
    is_complete boolean not null,
    until timestamptz)`.execute(db);
  await sql`create sequence usage_record_id_seq`.execute(db);
  await sql`create table open_usage_records (
    id bigint not null default nextval('usage_record_id_seq'),
    consumer_id varchar(36) not null,
    resource_provider_id integer not null,
    resource_class_id integer not null,
    project_id integer,
    user_id integer,
    consumer_type_id integer,
    amount bigint not null,
    name varchar(255),
    provider_uuid varchar(36),
    provider_name varchar(200),
    class_name varchar(255),
    began_at timestamptz not null,
    begun_by xid8)`.execute(db);
  await sql`alter sequence usage_record_id_seq owned by open_usage_records.id`.execute(db);
  await keepPages(db);
  await sql`create index open_usage_records_consumer_id_idx on open_usage_records (consumer_id)`.execute(db);
  // Few rows or none: it is read for each new consumer, which may have had allocations before its record.
  await sql`create index open_usage_records_without_owner_idx on open_usage_records (consumer_id) where project_id is null`.execute(
    db,
  );
  await sql`create table usage_records (
    id bigint not null,
    consumer_id varchar(36) not null,
    name varchar(255),
    project_id integer,
    user_id integer,
    consumer_type_id integer,
    provider_uuid varchar(36),
    provider_name varchar(200),
    class_name varchar(255),
    amount bigint not null,
    began_at timestamptz not null,
    ended_at timestamptz not null,
    ended varchar(16),
    primary key (ended_at, id))`.execute(db);
  await sql`create index usage_records_project_id_ended_at_idx on usage_records (project_id, ended_at)`.execute(db);
  for (const [signature, body] of Object.entries(functions)) {
    await sql`create or replace function ${sql.raw(signature)} language plpgsql as ${sql.lit(body)}`.execute(db);
  }
  await qualifyNames(db, [...Object.keys(functions).map((signature) => signature.replace(/\(.*/, '')), 'lost_race']);
  await lockTogether(db, ['allocations', 'consumers', 'consumer_names'], 'share row exclusive');
  for (const trigger of triggers) await sql.raw(`create trigger ${trigger}`).execute(db);
}

/**
 * As the change log (migration 006), the table gets some pages that are never released, so that no plan from a time when it was empty
 * reads the whole table.
 */
async function keepPages(db: Kysely<unknown>): Promise<void> {
  await sql`alter table open_usage_records set (vacuum_truncate = off)`.execute(db);
  await sql`insert into open_usage_records (id, consumer_id, resource_provider_id, resource_class_id, amount, began_at)
    select -n, '', 0, 0, 0, now() from generate_series(1, 2000) as n`.execute(db);
  await sql`delete from open_usage_records`.execute(db);
}

/** For statements on a few rows by their keys, as in migration 004. */
const byKeys = 'set plan_cache_mode = force_generic_plan set enable_seqscan = off';

/** Whether two rows have different owners. */
const otherOwner = (one: string, other: string) =>
  `(${one}.project_id, ${one}.user_id, ${one}.consumer_type_id) is distinct from (${other}.project_id, ${other}.user_id, ${other}.consumer_type_id)`;

/** How many consumers a row of the change log names at most. If more have changed, clients must read everything again. */
const mostLogged = 2_000;

/** Logs that consumers may have changed. It needs `uuids` and `at_end`. */
const logConsumers = `insert into provider_changes (provider_id, whole, parts, consumer_ids, logged_at)
      select null, true, case at_end when 'term' then 128 + 512 else 128 end, case when cardinality(uuids) <= ${mostLogged} then uuids end,
        clock_timestamp()`;

const logAllConsumers = 'insert into provider_changes (provider_id, whole, parts) values (null, true, 128)';

/** The first numbers of the advisory locks of consumers without a record: of all of them, and of one, which is the second number. */
const [allUnrecorded, oneUnrecorded] = [1_450_013, 1_450_014];

/** Whether the history is on. */
const isOn = 'exists (select from usage_history where until is null)';

/**
 * The settings in which a transaction stores which records it has ended and when, and the text of one of them. They are as many as this so
 * that a transaction of very many statements does not read all of it each time.
 */
const endedRecords = (uuid: string) => `'placement.ended_' || (hashtext(${uuid}) & 255)`;
const endedEntry = `chr(1) || id || '@' || (extract(epoch from ended_at) * 1000000)::bigint || '=' || consumer_id`;
/**
 * Stores there what the table `ended` has. A record that is opened again later is not removed from there: no ended record has its id any
 * more.
 */
const noteEnded = `(select count(set_config(setting, coalesce(current_setting(setting, true), '') || list, true)) from (
        select ${endedRecords('consumer_id')} as setting, string_agg(${endedEntry}, '') as list from ended group by 1
      ) as noted)`;
/** Reads from them which records of `uuids` have ended, and when. */
const readEnded = `select array_agg(split_part(key, '@', 1)::bigint),
      array_agg(distinct timestamptz 'epoch' + split_part(key, '@', 2)::bigint * interval '1 microsecond')
    into past_ids, past_ends
    from (select distinct ${endedRecords('uuid')} as setting from unnest(uuids) as uuid) as s
    cross join lateral unnest(string_to_array(current_setting(setting, true), chr(1))) as entry
    cross join lateral (select split_part(entry, '=', 1) as key, substr(entry, strpos(entry, '=') + 1) as consumer_id) as parts
    join unnest(uuids) as u (id) on u.id = consumer_id
    where key ~ '^[0-9]+@[0-9]+$'`;
/** Whether the transaction has ended no record of `uuids` yet. */
const isFirst = `not exists (
    select from unnest(uuids) as uuid where strpos(current_setting(${endedRecords('uuid')}, true), uuid) > 0
  )`;

/** Begins records for all that consumers hold which have none. Their records in `consumers` are locked, so none is begun meanwhile. */
const beginAll = `with logged as (${logConsumers})
      insert into open_usage_records (consumer_id, resource_provider_id, resource_class_id, project_id, user_id, consumer_type_id, amount,
        name, provider_uuid, provider_name, class_name, began_at, begun_by)
      select c.uuid, h.resource_provider_id, h.resource_class_id, c.project_id, c.user_id, c.consumer_type_id, h.amount, c.name, p.uuid,
        p.name, (select name from resource_classes where id = h.resource_class_id), clock_timestamp(), pg_current_xact_id()
      from (
        select uuid, project_id, user_id, consumer_type_id, (select name from consumer_names where consumer_id = consumers.id) as name
        from consumers where uuid = any(uuids) offset 0
      ) as c cross join lateral (
        select resource_provider_id, resource_class_id, sum(used) as amount from allocations where consumer_id = c.uuid group by 1, 2 offset 0
      ) as h
      left join lateral (select uuid, name from resource_providers where id = h.resource_provider_id offset 0) as p on true`;

/**
 * Adds the rows of table `gone` to the closed records.
 *
 * @param moment of the end
 * @param ended why they end
 * @param joined what these two need beside `gone`, which is called `g`
 */
const addEnded = (
  moment: string,
  ended: string,
  joined: string,
) => `insert into usage_records (id, consumer_id, name, project_id, user_id,
        consumer_type_id, provider_uuid, provider_name, class_name, amount, began_at, ended_at, ended)
      select g.id, g.consumer_id, g.name, g.project_id, g.user_id, g.consumer_type_id, g.provider_uuid,
        coalesce((select name from resource_providers where id = g.resource_provider_id), g.provider_name),
        coalesce((select name from resource_classes where id = g.resource_class_id), g.class_name), g.amount, g.began_at, ${moment}, ${ended}
      from gone g ${joined}
      where g.began_at < ${moment} and (g.begun_by is distinct from pg_current_xact_id() or g.began_at < now())`;
const addAllEnded = addEnded('at.moment', 'at_end', 'cross join at');

/** One end for all, after the locks of the records were waited for. */
const oneEnd = 'select greatest(clock_timestamp(), max(began_at)) as moment from gone';

/** Ends all records of consumers that hold nothing any more; none, if one of them holds something, which `is_holding` says then. */
const endAll = `with logged as (${logConsumers}),
      held as materialized (select exists (select from allocations where consumer_id = any(uuids)) as is_any),
      gone as (
        delete from open_usage_records where consumer_id = any(uuids) and not (select is_any from held) returning *
      ),
      at as materialized (${oneEnd}),
      ended as (
        ${addAllEnded}
        returning id, consumer_id, ended_at
      )
      select ${noteEnded}, (select is_any from held) into noted_count, is_holding`;

/**
 * Whether the transaction has locked the records of the consumers, and this statement, its only write, releases all that they hold. Then
 * nothing is looked up again. Two statements of this service say so: those that delete claims and end terms
 * (db/statements/usage_history.ts).
 */
const releasesWhole = "coalesce(current_setting('placement.released_whole', true), '') = 'on'";
const endWhole = `with logged as (${logConsumers}),
      gone as (delete from open_usage_records where consumer_id = any(uuids) returning *),
      at as materialized (${oneEnd})
      ${addAllEnded}`;

/**
 * Makes the open records of some consumers what these hold.
 *
 * The open records are locked by a separate statement, so that the next one sees what other transactions committed while this one waited.
 * The records of consumers are locked already: by the statement of this service, or by the trigger that makes their tags, which comes
 * before. A consumer without a record has none to lock: it has an advisory lock. Where a statement writes very many such consumers, it
 * takes one lock for all.
 *
 * A record that begins and ends in the same transaction is not kept: no other transaction has seen it. Some programs replace allocations by
 * two statements, a deletion and an insertion, which would close records that continue. So a transaction stores in settings which records
 * of which consumers it has ended. When it begins a record with the same content, the ended one is open again. Otherwise the reason of the
 * ended one is found again, and the record that follows it begins at its end.
 */
const settle = `declare
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
    select distinct hashtext(u.id) from unnest(uuids) as u (id) where not exists (select from consumers where uuid = u.id) order by 1
  );
  if cardinality(unrecorded) > 100 then
    perform pg_advisory_xact_lock(${allUnrecorded}, 0);
  elsif cardinality(unrecorded) > 0 then
    perform pg_advisory_xact_lock_shared(${allUnrecorded}, 0), pg_advisory_xact_lock(${oneUnrecorded}, each) from unnest(unrecorded) as each;
  end if;
  select coalesce(bool_or(begun_by = pg_current_xact_id()), false), greatest(clock_timestamp(), max(began_at)) into has_own, moment
    from (select began_at, begun_by from open_usage_records where consumer_id = any(uuids) order by id for update) as o;
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
        from allocations a left join lateral (
          select id, project_id, user_id, consumer_type_id from consumers where uuid = a.consumer_id offset 0
        ) as c on true
        where a.consumer_id = any(uuids)
        union all
        select consumer_id, resource_provider_id, resource_class_id, project_id, user_id, consumer_type_id, null, amount, id, null
        from open_usage_records where consumer_id = any(uuids)
      ) as both_sides
      group by 1, 2, 3, 4, 5, 6 having sum(held) is distinct from sum(amount)
    ) as changed;
  if gone_ids is null and consumer_ids is null then return; end if;
  ${logConsumers};
  if not ${isFirst} then ${readEnded}; end if;
  if gone_ids is not null then
    with gone as (
      delete from open_usage_records where consumer_id = any(uuids) and id in (select unnest(gone_ids)) returning *
    ),
    begun as materialized (
      select * from unnest(consumer_ids, provider_ids, class_ids, project_ids, user_ids, type_ids)
        as b (consumer_id, resource_provider_id, resource_class_id, project_id, user_id, consumer_type_id)
    ),
    owners as (select distinct consumer_id, project_id, user_id, consumer_type_id from begun),
    places as (select consumer_id, resource_class_id, array_agg(resource_provider_id) as provider_ids from begun group by 1, 2),
    ended as (
      ${addEnded(
        'moment',
        `case
          when o.consumer_id is not null and ${otherOwner('o', 'g')} then 'owner'
          when g.resource_provider_id = any(l.provider_ids) then 'rewritten'
          when l.consumer_id is not null then 'moved'
          else at_end end`,
        `left join owners o on o.consumer_id = g.consumer_id
      left join places l on l.consumer_id = g.consumer_id and l.resource_class_id = g.resource_class_id`,
      )}
      returning id, consumer_id, ended_at
    )
    select (select count(*) from gone), array(select id from ended), ${noteEnded} into gone_count, ended_ids, noted_count;
    if gone_count <> cardinality(gone_ids) then perform lost_race(); end if;
  end if;
  if consumer_ids is not null then
    insert into open_usage_records (consumer_id, resource_provider_id, resource_class_id, project_id, user_id, consumer_type_id, amount, name,
      provider_uuid, provider_name, class_name, began_at, begun_by)
    select b.consumer_id, provider_id, class_id, project_id, user_id, type_id, amount, n.name, p.uuid, p.name, r.name, moment, pg_current_xact_id()
    from unnest(consumer_ids, provider_ids, class_ids, project_ids, user_ids, type_ids, amounts, record_ids)
      as b (consumer_id, provider_id, class_id, project_id, user_id, type_id, amount, record_id)
    left join lateral (select name from consumer_names where consumer_id = b.record_id offset 0) as n on true
    left join lateral (select uuid, name from resource_providers where id = b.provider_id offset 0) as p on true
    left join lateral (select name from resource_classes where id = b.class_id offset 0) as r on true;
  end if;
  if has_own or past_ids is not null then
    past_ids := coalesce(past_ids, '{}') || ended_ids;
    past_ends := coalesce(past_ends, '{}') || moment;
    with past as materialized (select * from usage_records
      where ended_at = any(past_ends) and id = any(past_ids) and consumer_id = any(uuids)
    ),
    own as materialized (
      select * from open_usage_records where consumer_id = any(uuids) and begun_by = pg_current_xact_id()
    ),
    again as materialized (
      select o.id as own_id, max(p.id) as id, min(p.began_at) as began_at
      from own o join past p on p.consumer_id = o.consumer_id and p.provider_uuid = o.provider_uuid and p.class_name = o.class_name
        and p.amount = o.amount and not ${otherOwner('p', 'o')}
      group by o.id having count(*) = 1
    ),
    next as materialized (select * from own where id not in (select own_id from again)),
    left_over as materialized (select * from past where id not in (select id from again)),
    owners as (select distinct consumer_id, project_id, user_id, consumer_type_id from next),
    places as (select consumer_id, class_name, array_agg(provider_uuid) as provider_uuids from next group by 1, 2),
    reasons as (
      select p.ended_at, p.id, case
        when o.consumer_id is not null and ${otherOwner('o', 'p')} then 'owner'
        when p.provider_uuid = any(l.provider_uuids) then 'rewritten'
        when l.consumer_id is not null then 'moved'
        else at_end end as ended
      from left_over p left join owners o on o.consumer_id = p.consumer_id
      left join places l on l.consumer_id = p.consumer_id and l.class_name = p.class_name
    ),
    told as (
      update usage_records u set ended = r.ended from reasons r where u.ended_at = r.ended_at and u.id = r.id and u.ended is distinct from r.ended
    ),
    removed as (delete from usage_records where ended_at = any(past_ends) and id in (select id from again)),
    beginnings as (
      select o.id, coalesce(a.id, o.id) as new_id, coalesce(a.began_at, s.ended_at, l.ended_at, o.began_at) as began_at, a.id is null as is_own
      from own o left join again a on a.own_id = o.id
      left join (select consumer_id, provider_uuid, class_name, max(ended_at) as ended_at from left_over group by 1, 2, 3) as s
        on s.consumer_id = o.consumer_id and s.provider_uuid = o.provider_uuid and s.class_name = o.class_name
      left join (select consumer_id, class_name, max(ended_at) as ended_at from left_over group by 1, 2) as l
        on l.consumer_id = o.consumer_id and l.class_name = o.class_name
    ),
    shifted as (
      update open_usage_records o set id = b.new_id, began_at = b.began_at, begun_by = case when b.is_own then o.begun_by end
      from beginnings b
      where o.consumer_id = any(uuids) and o.id = b.id and (b.new_id, b.began_at) is distinct from (o.id, o.began_at)
    )
    select count(*) into gone_count from again;
  end if;
end`;

/** The function of a trigger. Where the history is off, it only reads the switch. */
const whileOn = (statements: string) => `begin
  if ${isOn} then
    ${statements};
  end if;
  return null;
end`;

const functions: Readonly<Record<string, string>> = {
  [`settle_usage_records(uuids text[]) returns void ${byKeys}`]: settle,
  // Mostly for new consumers, which takes one statement.
  [`record_allocations_inserted() returns trigger ${byKeys}`]: `declare
  uuids text[];
  at_end constant text := 'released';
begin
  if not ${isOn} then return null; end if;
  uuids := array(select distinct consumer_id from new_rows);
  if cardinality(uuids) = 0 then return null; end if;
  if ${isFirst} and not exists (select from open_usage_records where consumer_id = any(uuids))
    and (select count(*) from consumers where uuid = any(uuids)) = cardinality(uuids) then
    ${beginAll};
  else
    perform settle_usage_records(uuids);
  end if;
  return null;
end`,
  // Mostly of consumers that have nothing any more, which takes one statement as well.
  [`record_allocations_deleted() returns trigger ${byKeys}`]: `declare
  uuids text[];
  at_end text := case current_setting('placement.ended', true) when 'term' then 'term' else 'released' end;
  noted_count bigint;
  is_holding boolean;
begin
  if not ${isOn} then return null; end if;
  uuids := array(select distinct consumer_id from old_rows);
  if cardinality(uuids) = 0 then return null; end if;
  if ${releasesWhole} then
    ${endWhole};
  elsif ${isFirst} then
    ${endAll};
    -- Another transaction may have begun a record meanwhile.
    if is_holding or exists (select from open_usage_records where consumer_id = any(uuids)) then perform settle_usage_records(uuids); end if;
  else
    perform settle_usage_records(uuids);
  end if;
  return null;
end`,
  'record_allocations_updated() returns trigger': whileOn(
    'perform settle_usage_records(array(select consumer_id from old_rows union select consumer_id from new_rows))',
  ),
  'record_truncated() returns trigger': whileOn(
    'perform settle_usage_records(array(select consumer_id from open_usage_records union select consumer_id from allocations))',
  ),
  'record_owner_changed() returns trigger': whileOn('perform settle_usage_records(array[old.uuid, new.uuid]::text[])'),
  // Allocations that other programs inserted before their consumer.
  'record_consumers_inserted() returns trigger':
    whileOn(`if exists (select from open_usage_records where project_id is null) then
      perform settle_usage_records(array(
        select uuid from new_rows n
        where exists (select from open_usage_records o where o.consumer_id = n.uuid and o.project_id is null offset 0)
      ));
    end if`),
  'record_consumers_deleted() returns trigger': whileOn(`if not ${releasesWhole} then
      perform settle_usage_records(array(
        select uuid from old_rows d where exists (select from allocations a where a.consumer_id = d.uuid offset 0)
      ));
    end if`),
  'record_names_inserted() returns trigger': whileOn(
    'perform name_usage_records(array(select consumer_id from new_rows))',
  ),
  'record_names_deleted() returns trigger': whileOn(
    'perform name_usage_records(array(select consumer_id from old_rows))',
  ),
  'record_names_updated() returns trigger': whileOn(
    'perform name_usage_records(array(select consumer_id from old_rows union select consumer_id from new_rows))',
  ),
  'record_names_truncated() returns trigger': whileOn(
    `${logAllConsumers};
    update open_usage_records set name = null where name is not null`,
  ),
  // The consumers are locked first, as by each writer of their allocations. A consumer that holds nothing is not logged: clients would be
  // reported as removed a second time, with another reason.
  [`name_usage_records(ids integer[]) returns void ${byKeys}`]: `declare
  uuids text[];
  at_end constant text := 'released';
begin
  perform from consumers where id = any(ids) order by uuid for no key update;
  uuids := array(select uuid from consumers c where id = any(ids) and exists (select from allocations a where a.consumer_id = c.uuid offset 0));
  if cardinality(uuids) = 0 then return; end if;
  ${logConsumers};
  perform from open_usage_records where consumer_id = any(uuids) order by id for update;
  update open_usage_records o set name = c.name from (
    select uuid, (select name from consumer_names n where n.consumer_id = consumers.id) as name from consumers where id = any(ids)
  ) as c where o.consumer_id = any(uuids) and o.consumer_id = c.uuid and o.name is distinct from c.name;
end`,
};

/**
 * The names of the triggers of `allocations` sort behind `log_`, so that they run after the triggers that lock the consumers. They are for
 * each statement, since other triggers collect the rows of the statement already. The trigger for another owner is for each row: such a change
 * is rare.
 */
const triggers: readonly string[] = [
  `usage_insert after insert on allocations referencing new table as new_rows
    for each statement execute function record_allocations_inserted()`,
  `usage_delete after delete on allocations referencing old table as old_rows
    for each statement execute function record_allocations_deleted()`,
  `usage_update after update on allocations referencing old table as old_rows new table as new_rows
    for each statement execute function record_allocations_updated()`,
  'usage_truncate after truncate on allocations for each statement execute function record_truncated()',
  `usage_insert after insert on consumers referencing new table as new_rows
    for each statement execute function record_consumers_inserted()`,
  `usage_delete after delete on consumers referencing old table as old_rows
    for each statement execute function record_consumers_deleted()`,
  `usage_owner after update of uuid, project_id, user_id, consumer_type_id on consumers for each row
    when (old.project_id is distinct from new.project_id or old.user_id is distinct from new.user_id
      or old.consumer_type_id is distinct from new.consumer_type_id or old.uuid is distinct from new.uuid)
    execute function record_owner_changed()`,
  'usage_truncate after truncate on consumers for each statement execute function record_truncated()',
  `usage_insert after insert on consumer_names referencing new table as new_rows
    for each statement execute function record_names_inserted()`,
  `usage_delete after delete on consumer_names referencing old table as old_rows
    for each statement execute function record_names_deleted()`,
  `usage_update after update on consumer_names referencing old table as old_rows new table as new_rows
    for each statement execute function record_names_updated()`,
  'usage_truncate after truncate on consumer_names for each statement execute function record_names_truncated()',
];
