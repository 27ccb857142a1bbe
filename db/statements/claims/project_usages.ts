import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { onlyRow } from '../../engine/only_row.ts';
import { serverRun } from '../../engine/server_state.ts';
import { type FleetSnapshot, inventoryChangesSince } from '../../fleet/change_log.ts';
import { consumerTagsAreWritten } from '../entity_tags.ts';

/*
 * What projects use (migration 010), while usages are counted: the parts of statements that add to it and that judge limits by it.
 */

/** A change of what a project uses of a class; without a class, of how many of its consumers have something. */
export type ProjectUsage = {
  /** Null for allocations without a consumer record. */
  readonly project: string | null;
  readonly consumerType: string | null;
  readonly classId: number | null;
  readonly amount: number;
};

/** What a limit is of. */
export type LimitedUsage = {
  readonly project: string;
  /** Null for a number of consumers. */
  readonly classId: number | null;
  /** The consumers of this type; `unknown` is for consumers without a type; null is for all types that count. */
  readonly consumerType: string | null;
  /** Whether allocations without a consumer record count for the project. */
  readonly hasOld: boolean;
};

/** A limit on a usage that a claim, or a change of an owner, raises. */
export type LimitGuard = LimitedUsage & {
  readonly limit: number;
  /** By how much the write raises the usage. */
  readonly raise: number;
  /** By how much the writes before it in the same statement may raise it. */
  readonly ahead: number;
};

/** What a statement adds to the usages, and the limits that it must not exceed, of each of its claims by index. */
export type CountedWrite = {
  readonly usages: readonly ProjectUsage[];
  readonly limits: readonly LimitGuard[];
};

/** What a usage or a limit is of, as one text. */
export const usageKey = ({
  project,
  classId,
  consumerType,
}: Pick<ProjectUsage, 'project' | 'classId' | 'consumerType'>): string =>
  JSON.stringify([project, classId, consumerType]);

/** The first limit that a write exceeds, and how much is used of it; undefined if it exceeds none. */
export function exceededLimit(
  guards: readonly LimitGuard[],
  usedOf: (guard: LimitGuard) => number,
): { readonly guard: LimitGuard; readonly used: number } | undefined {
  const guard = guards.find((each) => usedOf(each) + each.raise > each.limit);
  return guard && { guard, used: usedOf(guard) };
}

/** How much was used of what some limits are of, from the column `usageColumn`; 0 for a limit that the column does not have. */
export function usageReader(
  guards: readonly LimitGuard[],
  row: Readonly<Record<string, number>> | null | undefined,
): (guard: LimitGuard) => number {
  const { indexOf } = limitedUsages(guards);
  return (guard) => row?.[indexOf(guard)] ?? 0;
}

/** What some limits are of, each once, and the index of each by its guard. */
export function limitedUsages(guards: readonly LimitGuard[]): {
  readonly keys: readonly LimitedUsage[];
  readonly indexOf: (guard: LimitedUsage) => number;
} {
  const indexes = new Map<string, number>();
  const keys: LimitedUsage[] = [];
  for (const guard of guards) {
    const key = usageKey(guard);
    if (indexes.has(key)) continue;
    indexes.set(key, keys.length);
    keys.push(guard);
  }
  return { keys, indexOf: (guard) => indexes.get(usageKey(guard)) ?? -1 };
}

/** The amounts of each row of usages, with their classes. */
export const eachAmount = sql`cross join lateral unnest(class_ids, amounts) as each_amount (class_id, amount)`;

/** How many locks all projects share. */
const projectLocks = 1024;
/** The first key of these locks; the second is the number of the lock. */
const projectLock = 1_460_000;

/**
 * Locks the projects whose usage a later statement of the transaction raises, until its end. If the raise comes nearer to a limit of the
 * project, no other transaction raises the usage meanwhile, and the snapshot of the statement has every earlier raise. If no limit is
 * concerned, the project gets no limit meanwhile.
 *
 * @param condition evaluated before the first lock
 */
export function lockRaised(
  writes: readonly CountedWrite[],
  condition: RawBuilder<unknown> = sql``,
): readonly RawBuilder<unknown>[] {
  const limited = new Set(writes.flatMap(({ limits }) => limits.map(({ project }) => projectLockNumber(project))));
  const raised = writes.flatMap(({ usages }) =>
    usages.flatMap(({ project, amount }) => (project !== null && amount > 0 ? [projectLockNumber(project)] : [])),
  );
  const numbers = [...new Set([...limited, ...raised])].sort((a, b) => a - b);
  if (numbers.length === 0) return [];
  return [
    sql`select case when limited then pg_advisory_xact_lock(${sql.lit(projectLock)}, number)
        else pg_advisory_xact_lock_shared(${sql.lit(projectLock)}, number) end
      from unnest(${numbers}::integer[], ${numbers.map((number) => limited.has(number))}::boolean[]) as p (number, limited) ${condition}`,
  ];
}

/** Locks a project, or all projects, until the end of the transaction: no other transaction raises what it uses meanwhile. */
export const lockProject = (project: string | 'all'): RawBuilder<unknown> =>
  sql`select pg_advisory_xact_lock(${sql.lit(projectLock)}, number)
    from generate_series(${project === 'all' ? 0 : projectLockNumber(project)}::integer,
      ${project === 'all' ? projectLocks - 1 : projectLockNumber(project)}::integer) as number`;

/**
 * The second key of the lock of a project: the FNV-1a hash of its id, which may be any text. Processes of two releases run side by side, so
 * it never changes.
 */
function projectLockNumber(project: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(project)) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0) % projectLocks;
}

/**
 * Tables of a statement that raises usages: `usage_change` has what it adds, and `limited` how much is used of what limits are of.
 *
 * @param writes of each claim, by its index
 * @param uncountedTypes consumer types that do not count
 */
export function countedTables(writes: readonly CountedWrite[], uncountedTypes: readonly string[]): RawBuilder<unknown> {
  const usages = writes.flatMap(({ usages }, claim) => usages.map((usage) => ({ claim, ...usage })));
  const { keys } = limitedUsages(writes.flatMap(({ limits }) => limits));
  const named = [...new Set([...usages, ...keys].flatMap(({ project }) => project ?? []))];
  const ownerOf = ({ project, consumerType }: ProjectUsage): string => JSON.stringify([project, consumerType]);
  const owners = new Map(usages.map((usage) => [ownerOf(usage), usage]));
  const indexes = new Map([...owners.keys()].map((owner, index) => [owner, index]));
  return sql`
    named_project as materialized (select id, external_id from projects where external_id = any(${named}::text[])),
    usage_owner as materialized (
      select o.index, p.id as project_id, t.id as type_id
      from unnest(${[...indexes.values()]}::integer[], ${[...owners.values()].map(({ project }) => project)}::text[],
        ${[...owners.values()].map(({ consumerType }) => consumerType)}::text[]) as o (index, project, type)
      left join named_project p on p.external_id = o.project left join consumer_types t on t.name = o.type
    ),
    usage_change as (
      select claim, project_id, type_id, class_id, amount
      from unnest(${usages.map(({ claim }) => claim)}::integer[], ${usages.map((usage) => indexes.get(ownerOf(usage)) ?? -1)}::integer[],
        ${usages.map(({ classId }) => classId)}::integer[], ${usages.map(({ amount }) => amount)}::bigint[]
      ) as u (claim, index, class_id, amount) join usage_owner using (index)
    ),
    ${keys.length === 0 ? sql`` : limitedTable(keys, uncountedTypes)}`;
}

/**
 * Table `limited`: how much is used of what limits are of, by the index in the list. The rows of a project are read once for all its
 * limits.
 */
const limitedTable = (keys: readonly LimitedUsage[], uncountedTypes: readonly string[]): RawBuilder<unknown> => sql`
    limit_key as materialized (
      select k.*, p.id as project_id
      from unnest(${keys.map((_, index) => index)}::integer[], ${keys.map(({ project }) => project)}::text[],
        ${keys.map(({ classId }) => classId)}::integer[], ${keys.map(({ consumerType }) => consumerType)}::text[],
        ${keys.map(({ hasOld }) => hasOld)}::boolean[]) as k (index, project, class_id, type, has_old)
      left join named_project p on p.external_id = k.project
    ),
    held_usage as materialized (
      select project, class_id, consumer_type_id, sum(amount) as used
      from (select distinct project, project_id from limit_key) as k
      cross join lateral (select * from project_usages where project_id = k.project_id offset 0) as rows
      ${eachAmount}
      group by 1, 2, 3${keys.some(({ hasOld }) => hasOld) ? oldUsage : sql``}
    ),
    limited as materialized (
      select k.index, k.project_id, coalesce(sum(u.used), 0)::float8 as used
      from limit_key k left join held_usage u
        on u.project = k.project and u.class_id is not distinct from k.class_id and ${isCounted(uncountedTypes)}
      group by 1, 2
    ),`;

/** What allocations without a consumer record use, for the project that they count for. */
const oldUsage = sql`
      union all
      select project, class_id, consumer_type_id, amount
      from (select distinct project from limit_key where has_old) as k cross join project_usages ${eachAmount} where project_id is null`;

const typeName = sql`coalesce((select name from consumer_types where id = u.consumer_type_id), 'unknown')`;

/** Whether a row of usages counts for a limit. */
const isCounted = (uncountedTypes: readonly string[]): RawBuilder<unknown> =>
  uncountedTypes.length === 0
    ? sql`(k.type is null or ${typeName} = k.type)`
    : sql`case when k.type is null then ${typeName} <> all(${uncountedTypes}::text[]) else ${typeName} = k.type end`;

/** Rows (claim, what): claims that exceed a limit, and claims that cannot be judged because usages are in doubt. */
export function lostLimits(writes: readonly CountedWrite[]): RawBuilder<unknown> {
  const guards = writes.flatMap(({ limits }, claim) => limits.map((guard) => ({ claim, ...guard })));
  if (guards.length === 0) return sql``;
  const { indexOf } = limitedUsages(guards);
  return sql`
      union all
      select g.claim, case when is_doubtful then 'usages' else 'limit' end
      from unnest(${guards.map(({ claim }) => claim)}::integer[], ${guards.map(indexOf)}::integer[],
        ${guards.map(({ ahead, raise }) => ahead + raise)}::float8[], ${guards.map(({ limit }) => limit)}::float8[]
      ) as g (claim, index, used_before, value) join limited l using (index)
      cross join lateral (select exists (select from doubtful_usages d where d.project_id is null or d.project_id = l.project_id) as is_doubtful) as d
      where is_doubtful or g.used_before + l.used > g.value`;
}

/** A column: how much was used of what the limits are of, by the indexes of `limitedUsages`; null where there are none. */
export const usageColumn = (writes: readonly CountedWrite[]): RawBuilder<unknown> =>
  writes.some(({ limits }) => limits.length > 0)
    ? sql`, (select json_object_agg(index, used) from limited) as "limitUsages"`
    : sql``;

/** Adds the changes of the claims that lost no guard. @param lost the indexes of the lost claims, as an array */
export const countedChanges = (lost: RawBuilder<unknown>): RawBuilder<unknown> => sql`
    counted as (
      ${insertSums(sql`select project_id, type_id as consumer_type_id, class_id, amount from usage_change where claim <> all(${lost})`)}
    )`;

/** Tells the triggers that the statement adds to the usages itself. */
export const usagesAreCounted = sql`set_config('placement.usages', 'counted', true)`;

/**
 * Tells the triggers that a statement which deletes allocations makes the tags of consumers itself (see entity_tags.ts), and whether
 * it has `countedReleases`.
 */
export const releasesAreAccounted = (isCounting: boolean): RawBuilder<unknown> =>
  isCounting
    ? sql`select set_config('placement.etags', 'written', true) || set_config('placement.usages', 'counted', true)`
    : consumerTagsAreWritten;

/**
 * Subtracts allocations that a statement deletes, while usages are counted. A process that does not know that usages are counted leaves
 * the subtraction to the triggers, which put the usages in doubt. The statement has the allocations in a table `released` with the columns
 * consumer_id, resource_class_id and used. An earlier statement has locked their consumers, so the snapshot has the present owners.
 */
export const countedReleases = (): RawBuilder<unknown> => sql`
    counted as (
      ${insertSums(sql`
        select c.project_id, c.consumer_type_id, r.resource_class_id as class_id,
          case when grouping(r.resource_class_id) = 0 then -sum(r.used) else -count(distinct r.consumer_id) end as amount
        from released r left join lateral (
          select project_id, consumer_type_id from consumers where uuid = r.consumer_id offset 0
        ) as c on true
        where exists (select from usage_counting)
        group by grouping sets ((1, 2, 3), (1, 2))`)}
    )`;

/**
 * Inserts the sums that are not 0, as a row for each project and type. @param amounts rows (project_id, consumer_type_id, class_id, amount)
 */
const insertSums = (amounts: RawBuilder<unknown>): RawBuilder<unknown> => sql`
      insert into project_usages (project_id, consumer_type_id, class_ids, amounts)
      select project_id, consumer_type_id, array_agg(class_id), array_agg(amount)
      from (
        select project_id, consumer_type_id, class_id, sum(amount)::bigint as amount
        from (${amounts}) as amounts group by 1, 2, 3 having sum(amount) <> 0
      ) as sums group by 1, 2`;

/** Whether limits may have changed since a snapshot, or usages are counted that were not counted then. */
export const mayLimitsDiffer = (since: FleetSnapshot): RawBuilder<boolean> =>
  sql`(${serverRun} <> ${since.serverRun} or exists (select from (${inventoryChangesSince(since)}) as changed where provider_id is null))`;

/**
 * How much is used of what limits are of, in one snapshot: `in doubt` where it must be corrected first, `changed` if the limits may have
 * changed since a snapshot.
 */
export async function readLimitedUsages(
  { kysely }: Pick<Database, 'kysely'>,
  keys: readonly LimitedUsage[],
  uncountedTypes: readonly string[],
  since: FleetSnapshot,
): Promise<readonly number[] | 'in doubt' | 'changed'> {
  const { used, isDoubtful, haveLimitsChanged } = await onlyRow(
    kysely,
    sql<{
      readonly used: Readonly<Record<string, number>> | null;
      readonly isDoubtful: boolean;
      readonly haveLimitsChanged: boolean;
    }>`
    with named_project as materialized (
      select id, external_id from projects where external_id = any(${[...new Set(keys.map(({ project }) => project))]}::text[])
    ),
    ${limitedTable(keys, uncountedTypes)}
    doubtful as (
      select from doubtful_usages where project_id is null or project_id in (select project_id from limited) limit 1
    )
    select (select json_object_agg(index, used) from limited) as used, exists (select from doubtful) as "isDoubtful",
      ${mayLimitsDiffer(since)} as "haveLimitsChanged"`,
  );
  if (haveLimitsChanged) return 'changed';
  return isDoubtful ? 'in doubt' : keys.map((_, index) => used?.[index] ?? 0);
}

/** With this lock only one transaction at a time corrects usages: two transactions would make the same correction. */
const correctionLock = 1_470_000;

/** What the consumers of a project have: rows (project_id, consumer_type_id, consumer_id, class_id, used). */
export const heldBy = (projectId: RawBuilder<unknown>): RawBuilder<unknown> => sql`
      select ${projectId} as project_id, c.consumer_type_id, c.uuid as consumer_id, a.resource_class_id as class_id, a.used
      from (select uuid, consumer_type_id from consumers where project_id = ${projectId} offset 0) as c
      cross join lateral (select resource_class_id, used from allocations where consumer_id = c.uuid offset 0) as a`;

/** The allocations without a consumer record, in the columns of `heldBy`. @param condition false for none */
export const heldWithoutRecord = (condition: RawBuilder<unknown>): RawBuilder<unknown> => sql`
      select null::integer, null::integer, a.consumer_id, a.resource_class_id, a.used
      from allocations a where ${condition} and not exists (select from consumers c where c.uuid = a.consumer_id)`;

/**
 * The amounts of rows of `heldBy`, and how many consumers they are of: rows (project_id, consumer_type_id, class_id, amount).
 *
 * @param condition false for none
 */
export const amountsOf = (held: RawBuilder<unknown>, condition: RawBuilder<unknown>): RawBuilder<unknown> => sql`
    select project_id, consumer_type_id, class_id, used::bigint as amount from ${held} where ${condition}
    union all
    select project_id, consumer_type_id, null, count(distinct consumer_id) from ${held} where ${condition} group by 1, 2`;

/** Marks the usages of all projects as doubtful, where usages are counted: something was written that is not in the counts. */
export const allUsagesAreDoubtful = sql`insert into doubtful_usages select null where exists (select from usage_counting)`;

const allAreDoubtful = sql`current_setting('placement.all_doubtful')::boolean`;
const doubtfulProjects = sql`current_setting('placement.doubtful_projects')::integer[]`;

/**
 * Corrects the usages that are in doubt: adds, to what was counted, the difference from what the consumers have. Both are of one snapshot,
 * so what other transactions add meanwhile does not matter.
 *
 * @param which only the projects whose usages are in doubt, or all projects
 */
export async function correctUsages(
  { transaction }: Pick<Database, 'transaction'>,
  which: 'doubtful' | 'all' = 'doubtful',
): Promise<void> {
  const take = sql`
    with gone as (delete from doubtful_usages returning project_id)
    select set_config('placement.doubtful_projects', coalesce(array_agg(distinct project_id) filter (where project_id is not null), '{}')::text, true),
      set_config('placement.all_doubtful', (${which === 'all'}::boolean or coalesce(bool_or(project_id is null), false))::text, true)
    from gone`;
  const some = correction(
    sql`select h.* from unnest(${doubtfulProjects}) as d (project_id) cross join lateral (${heldBy(sql`d.project_id`)}) as h
      where not ${allAreDoubtful}`,
    sql`not ${allAreDoubtful} and project_id = any(${doubtfulProjects})`,
  );
  const all = correction(sql`${everyHeld} where ${allAreDoubtful}`, allAreDoubtful);
  await transaction([sql`select pg_advisory_xact_lock(${sql.lit(correctionLock)})`, take, some, all]);
}

const everyHeld = sql`
    select c.project_id, c.consumer_type_id, a.consumer_id, a.resource_class_id as class_id, a.used
    from allocations a left join consumers c on c.uuid = a.consumer_id`;

const correction = (held: RawBuilder<unknown>, isCorrected: RawBuilder<unknown>): RawBuilder<unknown> => sql`
  with held as materialized (${held})
  ${insertSums(sql`
    ${amountsOf(sql`held`, sql`true`)}
    union all
    select project_id, consumer_type_id, class_id, -amount from project_usages ${eachAmount} where ${isCorrected}`)}`;

/** With this lock one process at a time finds which projects have many rows. */
const compactionLock = 1_480_000;

/**
 * Replaces the rows of projects that have many by their sums. Other transactions may add rows meanwhile: the sums are made of the deleted
 * rows only.
 */
export async function compactUsages({ kysely }: Pick<Database, 'kysely'>): Promise<void> {
  await sql`
    with long as materialized (
      select project_id from project_usages where (select pg_try_advisory_xact_lock(${sql.lit(compactionLock)}))
      group by 1 having count(*) > 8 + 2 * count(distinct consumer_type_id)
    ),
    deleted as (
      -- Ids begin at 1. "is not distinct from" compares each row with each project.
      delete from project_usages u using long where coalesce(u.project_id, 0) = coalesce(long.project_id, 0)
      returning u.project_id, consumer_type_id, class_ids, amounts
    )
    ${insertSums(sql`select project_id, consumer_type_id, class_id, amount from deleted ${eachAmount}`)}`.execute(
    kysely,
  );
}
