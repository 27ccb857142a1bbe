import { setTimeout as sleep } from 'node:timers/promises';
import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { onlyRow } from '../engine/only_row.ts';
import { utcNow } from '../engine/time.ts';
import {
  amountsOf,
  correctUsages,
  eachAmount,
  heldBy,
  heldWithoutRecord,
  lockProject,
} from './claims/project_usages.ts';
import { raised } from './generations.ts';

/** The values of a project by name; null lifts a default. */
export type StoredValues = {
  readonly resources: Readonly<Record<string, number | null>>;
  readonly consumers: Readonly<Record<string, number | null>>;
};

/** The values of a project, or the defaults, as they are stored. */
export type StoredLimits = StoredValues & {
  /** Empty for the defaults. */
  readonly project: string;
  readonly generation: number;
  readonly isImported: boolean;
};

/** What the consumers of a type have together. */
export type UsageOfType = {
  /** `unknown` for consumers without a type. */
  readonly type: string;
  /** Null for how many of them have something. */
  readonly className: string | null;
  readonly used: number;
};

/** The stored values of some projects, and their usages. */
export type ReadLimits = {
  /** Undefined where there are none. */
  readonly defaults: StoredLimits | undefined;
  readonly projects: readonly {
    readonly project: string;
    readonly own: StoredLimits | undefined;
    readonly usages: readonly UsageOfType[];
  }[];
};

const storedColumns = sql`project, generation, resources, consumers, is_imported as "isImported"`;

/** The requested projects: some by name, or projects with explicit values, by name behind a marker. */
export type ProjectSelection =
  | { readonly names: readonly string[] }
  | { readonly after: string; readonly limit: number };

/**
 * Reads limits and usages in one snapshot. Usages that are in doubt are recounted, and stay in doubt.
 *
 * @param incompleteProject the project that old allocations without a consumer record count for
 */
export async function readLimits(
  { kysely }: Pick<Database, 'kysely'>,
  selection: ProjectSelection,
  incompleteProject: string,
): Promise<ReadLimits> {
  const chosen =
    'names' in selection
      ? sql`select unnest(${selection.names}::text[]) as project`
      : sql`select project from limits where project <> '' and project > ${selection.after} order by project limit ${selection.limit}`;
  const row = await onlyRow(
    kysely,
    sql<{
      readonly defaults: StoredLimits | null;
      readonly projects:
        | readonly { project: string; own: StoredLimits | null; usages: readonly UsageOfType[] | null }[]
        | null;
    }>`
    with chosen as materialized (${chosen}),
    named as materialized (
      select project, (select id from projects where external_id = chosen.project) as id, project = ${incompleteProject} as has_old from chosen
    ),
    doubt as materialized (select distinct project_id from doubtful_usages),
    numbered as materialized (
      select *, exists (select from doubt d where d.project_id is null or d.project_id = named.id) as is_doubtful from named
    ),
    stored as not materialized (select ${storedColumns} from limits)
    select (select to_json(s) from stored s where project = '') as defaults,
      (
        select json_agg(json_build_object('project', n.project, 'own', (select to_json(s) from stored s where s.project = n.project),
          'usages', (
            select json_agg(u) from (
              select coalesce((select name from consumer_types where id = consumer_type_id), 'unknown') as type,
                (select name from resource_classes where id = class_id) as "className", sum(amount)::float8 as used
              from (
                select consumer_type_id, class_id, amount from (
                  select * from project_usages where project_id = n.id
                  union all
                  select * from project_usages where project_id is null and n.has_old
                ) as rows ${eachAmount} where not n.is_doubtful
                union all
                select consumer_type_id, class_id, amount from (${amountsOf(
                  sql`(${heldBy(sql`n.id`)} union all ${heldWithoutRecord(sql`n.has_old`)}) as held`,
                  sql`n.is_doubtful`,
                )}) as counted_anew
              ) as usage group by 1, 2
            ) as u
          )) order by n.project)
        from numbered n
      ) as projects`,
  );
  return {
    defaults: row.defaults ?? undefined,
    projects: (row.projects ?? []).map(({ project, own, usages }) => ({
      project,
      own: own ?? undefined,
      usages: usages ?? [],
    })),
  };
}

/** With this lock one transaction at a time changes limits: so the counting cannot end while limits are stored. */
const limitsLock = 1_490_000;
const lockLimits = sql`select pg_advisory_xact_lock(${sql.lit(limitsLock)})`;

/** The values to store, and the generation of the values that they replace; null if there are none. */
export type NewLimits = StoredValues & {
  readonly project: string;
  readonly known: number | null;
  readonly isImported?: boolean;
};

/**
 * Stores the values of a project, or the defaults, instead of all that it has.
 *
 * It waits for the writes that raise what the projects have: so each such write either sees the limits, or its usage is counted for them.
 * The first limit also waits for the transactions of all programs that are writing allocations or consumers.
 *
 * @returns the stored values; undefined if the generation is another one, or if a class is gone of which the project has no limit yet
 * @throws WritesUnderWay if those transactions did not end in time: then nothing is stored
 */
export async function writeLimits(database: Database, limits: NewLimits): Promise<StoredLimits | undefined> {
  for (;;) {
    try {
      await beginCounting(database);
      const locks = lockProject(limits.project === '' ? 'all' : limits.project);
      const [, , , [row]] = await database.transaction([lockLimits, lockClasses(limits), locks, storing(limits)]);
      if (!row?.isCounted) continue; // the last limit was deleted meanwhile
      if (row.stored !== null) return row.stored;
    } catch (error) {
      // If the database is unavailable, `endCountingWithoutLimits` does it later.
      await database.transaction([lockLimits, endCounting]).catch(() => {});
      throw error;
    }
    await database.transaction([lockLimits, endCounting]);
    return undefined;
  }
}

/** Stops a counting that began minutes ago and has led to no limit: its process has ended, or lost the database. */
export async function endCountingWithoutLimits({ transaction }: Pick<Database, 'transaction'>): Promise<void> {
  await transaction([lockLimits, endCountingIf(sql`since < ${utcNow} - interval '5 minutes'`)]);
}

/** So that no class gets another name until its limit is stored: what renames a class also renames it in all stored limits. */
const lockClasses = ({ resources }: NewLimits): RawBuilder<unknown> =>
  sql`select from resource_classes where name = any(${Object.keys(resources)}::text[]) order by id for key share`;

function storing({ project, resources, consumers, known, isImported = false }: NewLimits) {
  const values = sql`${JSON.stringify(resources)}::jsonb as resources, ${JSON.stringify(consumers)}::jsonb as consumers`;
  const change: RawBuilder<unknown> =
    known === null
      ? sql`insert into limits (project, generation, resources, consumers, is_imported, updated_at)
        select ${project}, ${raised(sql`(select generation from deleted_limits where project = ${project})`)},
          resources, consumers, ${isImported}, ${utcNow} from wanted where is_counted and has_classes
        on conflict (project) do nothing returning ${storedColumns}`
      : sql`update limits l set generation = ${raised(sql`l.generation`)}, resources = wanted.resources, consumers = wanted.consumers,
          is_imported = ${isImported}, updated_at = ${utcNow}
        from wanted where is_counted and has_classes and l.project = ${project} and l.generation = ${known}
          ${isImported ? sql`and l.is_imported` : sql``} -- an import replaces nothing else, also if it has the same generation
        returning l.project, l.generation, l.resources, l.consumers, l.is_imported as "isImported"`;
  return sql<{ readonly isCounted: boolean; readonly stored: StoredLimits | null }>`
    with wanted as materialized (
      select ${values}, exists (select from usage_counting where is_counted) as is_counted, not exists (
        select from unnest(${Object.keys(resources)}::text[]) as class (name)
        where not exists (select from resource_classes c where c.name = class.name)
          and not exists (select from limits l where l.project = ${project} and jsonb_exists(l.resources, class.name))
      ) as has_classes
    ),
    stored as (${change})
    select is_counted as "isCounted", (select to_json(s) from stored s) as stored from wanted`;
}

/**
 * Deletes the values of a project, or the defaults. Without any values left, the counting of usages stops.
 *
 * @param known the generation that they must have; undefined for any
 * @returns whether they were there with this generation
 */
export async function deleteLimits(
  { transaction }: Pick<Database, 'transaction'>,
  project: string,
  known: number | undefined,
): Promise<boolean> {
  const remove = sql<{ readonly project: string }>`
    with gone as (
      delete from limits where project = ${project} ${known === undefined ? sql`` : sql`and generation = ${known}`} returning project, generation
    )
    insert into deleted_limits select * from gone
    on conflict (project) do update set generation = excluded.generation returning project`;
  const [, removed] = await transaction([lockLimits, remove, endCounting]);
  return removed.length > 0;
}

/** Stops the counting of usages if there is no limit, and if the counting meets a condition. */
const endCountingIf = (condition: RawBuilder<boolean>): RawBuilder<unknown> => sql`
  with ended as (delete from usage_counting where not exists (select from limits) and ${condition} returning since),
  usages as (delete from project_usages where exists (select from ended))
  delete from doubtful_usages where exists (select from ended)`;

const endCounting = endCountingIf(sql`true`);

/**
 * Begins to count what projects use, if there is no limit yet. First, all statements that begin from now on add to the counts. Then, when
 * all statements that began earlier have ended, all usages are counted once.
 */
async function beginCounting(database: Database): Promise<void> {
  const { kysely, transaction } = database;
  const counted = sql<{ readonly yes: boolean }>`select exists (select from usage_counting where is_counted) as yes`;
  if ((await onlyRow(kysely, counted)).yes) return;
  const [, , [begun]] = await transaction([
    lockLimits,
    sql`insert into usage_counting (since, is_counted) select ${utcNow}, false where not exists (select from usage_counting)`,
    sql<{ readonly since: string }>`select since::text as since from usage_counting`,
  ]);
  await untilWritesEnd(database);
  await correctUsages(database, 'all');
  // Another process may have stopped this counting, and begun another one that does not count everything yet.
  await transaction([
    lockLimits,
    sql`update usage_counting set is_counted = true where since::text = ${begun?.since ?? ''}`,
  ]);
}

/** Other transactions that write allocations or consumers did not end within the time limit of a statement. */
export class WritesUnderWay extends Error {}

const pauseMs = 5;

/** The time that is waited where statements have no time limit. */
const usualTimeoutMs = 30_000;

/**
 * Waits until all transactions that are writing allocations or consumers now have ended. A statement locks its tables before it takes its
 * snapshot: so each statement that does not see the present commits belongs to one of these transactions.
 */
async function untilWritesEnd({ kysely, statementTimeoutMs }: Database): Promise<void> {
  const writers = (among: readonly string[] | undefined) => sql<{ readonly writers: readonly string[] }>`
    select coalesce(array_agg(distinct virtualtransaction), '{}') as writers from pg_locks
    where locktype = 'relation' and relation in ('allocations'::regclass, 'consumers'::regclass) and granted
      -- a copy of a database has the same numbers of tables
      and database = (select oid from pg_database where datname = current_database())
      and mode in ('RowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') and pid is distinct from pg_backend_pid()
      ${among === undefined ? sql`` : sql`and virtualtransaction = any(${among}::text[])`}`;
  const endsAtMs = performance.now() + (statementTimeoutMs > 0 ? statementTimeoutMs : usualTimeoutMs);
  let { writers: left } = await onlyRow(kysely, writers(undefined));
  while (left.length > 0) {
    if (performance.now() > endsAtMs) throw new WritesUnderWay();
    await sleep(pauseMs);
    ({ writers: left } = await onlyRow(kysely, writers(left)));
  }
}
