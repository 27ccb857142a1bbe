import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { utcNow } from '../../engine/time.ts';
import type { FleetSnapshot } from '../../fleet/change_log.ts';
import {
  type CountedWrite,
  countedChanges,
  countedTables,
  exceededLimit,
  type LimitGuard,
  lockRaised,
  lostLimits,
  mayLimitsDiffer,
  usageColumn,
  usageReader,
  usagesAreCounted,
} from '../claims/project_usages.ts';
import { hasSeen, type NamedAllocation } from '../claims/read_allocations.ts';
import { raised } from '../generations.ts';
import { carryTermsOver, noteRewritten, type SeenConsumer } from './set_term.ts';

/** The new owner and type of a consumer; null for no type. `name` is its new name, null for none; undefined keeps the one that it has. */
export type ConsumerOwner = {
  readonly projectId: string;
  readonly userId: string;
  readonly consumerType: string | null;
  readonly name?: string | null | undefined;
};

/** A consumer record as it was written. */
type WrittenRecord = {
  readonly generation: number;
  readonly created: Date | null;
  readonly updated: Date | null;
  /** Null if the consumer has no allocations. */
  readonly etag: string | null;
  /** When its term expires; null without a term. */
  readonly expires: Date | null;
};

/**
 * The outcome of a write: `no owner` if the project, the user or the type does not exist, `changed` if a guard failed, `in doubt` if
 * what the project uses must be corrected first. `exceeded` is a limit that the write would exceed; `used` is the
 * usage before the write.
 */
export type ConsumerWritten =
  | WrittenRecord
  | 'no owner'
  | 'changed'
  | 'in doubt'
  | { readonly exceeded: LimitGuard; readonly used: number };

/** What the new owner was judged by. */
export type OwnerJudgement = {
  /** The snapshot of the fleet that had the limits. If the limits may have changed since, the write fails its guard. */
  readonly judgedOn: FleetSnapshot;
  /** What the write adds to the usages of projects, and the limits that it must not exceed; undefined while usages are not counted. */
  readonly counted: CountedWrite | undefined;
  /** Consumer types that do not count for limits. */
  readonly uncountedTypes: readonly string[];
};

/**
 * The parts of a statement that writes an owner in its table `written`.
 *
 * @param isSeen whether the consumer is as it was seen: otherwise it is not known by how much its usages are raised
 */
function judgedParts({ judgedOn, counted, uncountedTypes }: OwnerJudgement, isSeen: RawBuilder<unknown>) {
  const isUnchanged = sql`and not ${mayLimitsDiffer(judgedOn)}`;
  if (counted === undefined) return { tables: sql``, guard: isUnchanged, counting: sql``, columns: sql``, locks: [] };
  return {
    tables: sql`${countedTables([counted], uncountedTypes)}
    lost as materialized (
      select what from (select 0 as claim, null as what where false ${lostLimits([counted])}) as by_limits where ${isSeen} ${isUnchanged}
    ),`,
    guard: sql`${isUnchanged} and not exists (select from lost)`,
    counting: sql`, ${countedChanges(sql`array(select 0 where not exists (select from written))`)}`,
    columns: sql`, (select what from lost limit 1) as lost, ${usagesAreCounted} as settings ${usageColumn([counted])}`,
    locks: lockRaised([counted]),
  };
}

/** Table `owner`: one row with the ids of these names; null for a name that does not exist. */
const ownerIds = ({ projectId, userId, consumerType }: ConsumerOwner): RawBuilder<unknown> => sql`
    owner as materialized (
      select project_id, user_id, type_id, project_id is not null and user_id is not null and (named is null or type_id is not null) as exists
      from (select (select id from projects where external_id = ${projectId}) as project_id,
        (select id from users where external_id = ${userId}) as user_id,
        (select id from consumer_types where name = ${consumerType}::text) as type_id, ${consumerType}::text as named
      ) as ids
    )`;

/**
 * The columns to return of a written record `c`. A trigger writes its tag, unless the record is an old one whose
 * content did not change.
 */
const writtenColumns = sql`c.generation, c.created_at as created, c.updated_at as updated,
        coalesce(c.etag, etag_of_allocations(c)) as etag`;

/** The part of a statement that sets or removes the name of the record in its table `written`. */
function nameOfWritten({ name }: ConsumerOwner): RawBuilder<unknown> {
  if (name === undefined) return sql``;
  if (name === null) return sql`, unnamed as (delete from consumer_names where consumer_id = (select id from written))`;
  return sql`,
    named as (
      insert into consumer_names (consumer_id, name) select id, ${name}::text from written
      on conflict (consumer_id) do update set name = excluded.name
    )`;
}

/** The row of a statement that ends with `selectOutcome`. */
type OutcomeRow = { readonly hasOwner: boolean } & {
  readonly [Name in Exclude<keyof WrittenRecord, 'expires'>]: WrittenRecord[Name] | null;
} & {
  readonly id: number | null;
  /** Of a write that is counted. */
  readonly lost?: string | null;
  readonly settings?: string;
  readonly limitUsages?: Readonly<Record<string, number>> | null;
};

/**
 * Ends a statement: selects the one row of `owner`, with the record in the table `written` if there is one.
 *
 * @param more further columns
 */
const selectOutcome = (more: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`select owner.exists as "hasOwner", written.* ${more} from owner left join written on true`;

/** The outcome of a statement with `selectOutcome`, by its row and the end of the term that was carried over, if there was one. */
function outcomeOf(
  [row]: readonly OutcomeRow[],
  { counted }: OwnerJudgement,
  [term]: readonly Pick<WrittenRecord, 'expires'>[] = [],
): ConsumerWritten {
  if (row === undefined || !row.hasOwner) return 'no owner';
  const { generation, created, updated, etag } = row;
  if (row.lost === 'usages') return 'in doubt';
  const limits = counted?.limits ?? [];
  const exceeded = row.lost === 'limit' ? exceededLimit(limits, usageReader(limits, row.limitUsages)) : undefined;
  if (exceeded !== undefined) return { exceeded: exceeded.guard, used: exceeded.used };
  return generation === null ? 'changed' : { generation, created, updated, etag, expires: term?.expires ?? null };
}

/**
 * Sets another owner and type of a consumer, and the next generation, if its record has not changed since it was read.
 * A claim on the same consumer that was judged before this write then fails its guard. After a claim that was written
 * first, this write fails. The consumer keeps its term.
 */
export async function updateConsumer(
  { write }: Pick<Database, 'write'>,
  { uuid, id, generation, allocations }: SeenConsumer,
  owner: ConsumerOwner,
  judgement: OwnerJudgement,
): Promise<ConsumerWritten> {
  const judged = judgedParts(
    judgement,
    sql`exists (select from consumers where uuid = ${uuid} and generation = ${generation} and id = ${id})`,
  );
  const update = sql<OutcomeRow>`
    with ${ownerIds(owner)},
    ${judged.tables}
    written as (
      update consumers c set generation = ${raised(sql`c.generation`)}, project_id = owner.project_id,
        user_id = owner.user_id, consumer_type_id = owner.type_id, updated_at = ${utcNow}
      from owner where owner.exists and c.uuid = ${uuid} and c.generation = ${generation} and c.id = ${id}
        ${allocations === undefined ? sql`` : sql`and ${hasSeen(uuid, allocations)}`} ${judged.guard}
      returning c.id, ${writtenColumns}
    )${nameOfWritten(owner)}${judged.counting}
    ${selectOutcome(sql`, ${noteRewritten(sql`written`)} ${judged.columns}`)}`;
  const lock = sql`select id from consumers where uuid = ${uuid} for update`;
  const lockAllocations = sql`select id from allocations where consumer_id = ${uuid} order by id for update`;
  const isLocked = allocations !== undefined || judged.locks.length > 0;
  // The consumer first: no project is locked while the write waits for it.
  const locks = [...(isLocked ? [lock] : []), ...(allocations === undefined ? [] : [lockAllocations]), ...judged.locks];
  const results = await write([...locks, update, carryTermsOver]);
  const [rows, terms] = results.slice(-2) as [readonly OutcomeRow[], readonly Pick<WrittenRecord, 'expires'>[]]; // of the last two
  return outcomeOf(rows, judgement, terms);
}

/**
 * Creates a consumer record with generation 1 for old allocations without one. The allocations are locked, as by the
 * online data migration, so that they cannot be deleted meanwhile. If no allocation is left, or there is a record now,
 * nothing is written.
 *
 * @param seen the exact allocations that the consumer must still have, if the client named what it has seen
 */
export async function completeConsumer(
  { write }: Pick<Database, 'write'>,
  { uuid, seen }: { readonly uuid: string; readonly seen: readonly NamedAllocation[] | undefined },
  owner: ConsumerOwner,
  judgement: OwnerJudgement,
): Promise<ConsumerWritten> {
  const judged = judgedParts(judgement, sql`not exists (select from consumers where uuid = ${uuid})`);
  // A separate statement, so that the next one sees what other transactions did to the allocations before the lock.
  const lock = sql`select id from allocations where consumer_id = ${uuid} order by id
    ${seen === undefined ? sql`for key share` : sql`for update`}`;
  const insert = sql<OutcomeRow>`
    with ${ownerIds(owner)},
    ${judged.tables}
    written as (
      insert into consumers as c (uuid, project_id, user_id, consumer_type_id, generation, created_at)
      select ${uuid}, project_id, user_id, type_id, 1, ${utcNow} from owner
      where owner.exists and exists (select from allocations where consumer_id = ${uuid})
        ${seen === undefined ? sql`` : sql`and ${hasSeen(uuid, seen)}`} ${judged.guard}
      on conflict (uuid) do nothing returning c.id, ${writtenColumns}
    )${nameOfWritten(owner)}${judged.counting}
    ${selectOutcome(judged.columns)}`;
  const results = await write([lock, ...judged.locks, insert]);
  return outcomeOf(results.at(-1) as readonly OutcomeRow[], judgement); // the rows of `insert`
}
