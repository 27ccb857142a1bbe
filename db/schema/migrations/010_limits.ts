import { type Kysely, sql } from 'kysely';
import { lockTogether } from '../brief_locks.ts';
import { qualifyNames } from '../qualified_names.ts';

/**
 * Limits of projects, and what projects use, which claims are judged by while limits exist.
 *
 * - `limits`: a row for each project that has explicit values; the project '' is for the defaults. The values are by name, because a
 *   limit is kept while its class is deleted. If a class is renamed, a trigger renames its limits.
 * - `deleted_limits`: the last generation of the values of a project that were deleted. The next values continue from there, so that no
 *   client takes them for the deleted values.
 * - `usage_counting` has a row while usages are counted: from before the first limit is stored until the last one is deleted. `is_counted`
 *   says that what was there before has been counted as well.
 * - `project_usages`: rows that add up to what the consumers of a project use, by their type: amounts, each with its class; the amounts
 *   whose class is null add up to the number of consumers that have something. A null project is for allocations without a consumer
 *   record. The statements of this service that change allocations add rows in the same transaction. No row is updated, so no two writers
 *   wait for each other.
 * - `doubtful_usages`: projects whose rows may be wrong, and must be corrected before they are relied on; null means all. Triggers add a
 *   row where a statement changes allocations or owners and adds nothing to `project_usages` itself. Other programs and older releases have
 *   such statements. A trigger cannot add to `project_usages`: it finds no owner where the statement deletes the consumer as well.
 *
 * A change of the first two tables is logged in both change logs, for all processes: in `provider_changes` with the bit 64 in `parts`,
 * and in `inventory_changes` as a row about all providers. So a claim that was judged before fails its guard.
 *
 * The function `renamed_classes` is for claims that name custom classes.
 *
 * It locks the tables of consumers and of classes only, and in the end.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table limits (
    project varchar(255) collate "C" primary key,
    generation integer not null,
    resources jsonb not null,
    consumers jsonb not null,
    is_imported boolean not null default false,
    updated_at timestamp not null)`.execute(db);
  await sql`create table deleted_limits (
    project varchar(255) collate "C" primary key,
    generation integer not null)`.execute(db);
  await sql`create table usage_counting (
    since timestamp not null,
    is_counted boolean not null)`.execute(db);
  await sql`create table project_usages (
    project_id integer,
    consumer_type_id integer,
    class_ids integer[] not null,
    amounts bigint[] not null)`.execute(db);
  await sql`create index project_usages_project_id_idx on project_usages (project_id)`.execute(db);
  await sql`create table doubtful_usages (project_id integer)`.execute(db);
  await keepPages(db);
  for (const [signature, body] of Object.entries(functions)) {
    const text = `begin\n  ${body};\nend`;
    await sql`create or replace function ${sql.raw(signature)} language plpgsql as ${sql.lit(text)}`.execute(db);
  }
  await qualifyNames(db, [
    ...Object.keys(functions).map((signature) => signature.replace(/\(.*/, '')),
    'etag_consumers',
  ]);
  await lockTogether(db, ['consumers', 'resource_classes'], 'share row exclusive');
  for (const trigger of triggers) await sql.raw(`create trigger ${trigger}`).execute(db);
}

/**
 * As the change log (migration 006), the table gets some twenty pages that are never released, so that no plan from a time when it was
 * empty reads the whole table.
 */
async function keepPages(db: Kysely<unknown>): Promise<void> {
  await sql`alter table project_usages set (vacuum_truncate = off)`.execute(db);
  await sql`insert into project_usages select 0, 0, '{0,0}', '{0,0}' from generate_series(1, 2000)`.execute(db);
  await sql`delete from project_usages`.execute(db);
}

const usage = (sign: string, rows: string) =>
  `select resource_provider_id, resource_class_id, sum(${sign}used)::bigint as delta from ${rows} group by 1, 2`;

/** Whether usages are counted, and the statement does not add to them itself. */
const areUnaccounted = `current_setting('placement.usages', true) is distinct from 'counted' and exists (select from usage_counting)`;

/** The function of a trigger of allocations: logs what moved, makes the tags of the consumers, and marks usages as doubtful. */
const logUsage = (
  deltas: string,
  consumers: string,
) => `insert into provider_changes (provider_id, whole, class_ids, used_deltas)
    select resource_provider_id, false, array_agg(resource_class_id), array_agg(delta)
    from (${deltas}) as moved where delta <> 0 group by resource_provider_id;
  if current_setting('placement.etags', true) is distinct from 'written' then
    perform etag_consumers(array(${consumers}));
  end if;
  if ${areUnaccounted} then
    perform doubt_usages(array(${consumers}));
  end if;
  return null`;

const functions: Readonly<Record<string, string>> = {
  // A statement of this service that does not know of limits yet may change allocations and owners at once.
  'doubt_usages(uuids text[]) returns void': `if cardinality(uuids) = 0 then return; end if;
  if current_setting('placement.etags', true) = 'written' or exists (
    select from unnest(uuids) as u (uuid) where not exists (select from consumers c where c.uuid = u.uuid offset 0)
  ) then insert into doubtful_usages values (null);
  else insert into doubtful_usages select distinct project_id from consumers where uuid = any(uuids);
  end if`,
  'log_allocations_inserted() returns trigger': logUsage(usage('', 'new_rows'), 'select consumer_id from new_rows'),
  'log_allocations_deleted() returns trigger': logUsage(usage('-', 'old_rows'), 'select consumer_id from old_rows'),
  'log_allocations_updated() returns trigger': logUsage(
    `select resource_provider_id, resource_class_id, sum(delta)::bigint as delta from
      (${usage('', 'new_rows')} union all ${usage('-', 'old_rows')}) as both_sides group by 1, 2`,
    'select consumer_id from new_rows union select consumer_id from old_rows',
  ),
  'log_truncated() returns trigger': `insert into provider_changes (provider_id, whole) values (null, false);
  insert into inventory_changes default values;
  if exists (select from usage_counting) then insert into doubtful_usages values (null); end if;
  return null`,
  'usages_moved() returns trigger': `if ${areUnaccounted} then
    insert into doubtful_usages values (old.project_id), (new.project_id);
  end if;
  return null`,
  'limits_changed() returns trigger': `insert into provider_changes (provider_id, whole, parts) values (null, true, 64);
  insert into inventory_changes default values;
  return null`,
  'class_renamed() returns trigger': `if exists (select from limits) then
    update limits set generation = generation + 1,
      resources = resources - old.name::text || jsonb_build_object(new.name, resources -> old.name::text)
      where jsonb_exists(resources, old.name::text);
  end if;
  return null`,
  // For the statement that writes claims: in a function a query sees what was committed while the statement waited for a lock.
  'renamed_classes(ids integer[], names text[]) returns integer[]': `return array(
    select k.id from unnest(ids, names) as k (id, name)
    where not exists (select from resource_classes r where r.id = k.id and r.name = k.name)
  )`,
};

const triggers: readonly string[] = [
  'limits_changed after insert or update or delete or truncate on limits for each statement execute function limits_changed()',
  'limits_changed after insert or delete or truncate on usage_counting for each statement execute function limits_changed()',
  // By its name it runs before the trigger that computes the tags of consumers again and locks the consumers.
  `class_renamed after update of name on resource_classes
    for each row when (old.name is distinct from new.name) execute function class_renamed()`,
  `usages_moved after update of project_id, consumer_type_id on consumers for each row
    when (old.project_id is distinct from new.project_id or old.consumer_type_id is distinct from new.consumer_type_id)
    execute function usages_moved()`,
];
