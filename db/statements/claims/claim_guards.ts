import { type RawBuilder, sql } from 'kysely';
import type { LockWait } from '../../engine/slow_lane.ts';
import { changesSince, type FleetSnapshot, inventoryChangesSince, isLogTooShort } from '../../fleet/change_log.ts';
import { limitLockWait } from '../locked_rows.ts';
import { sharedLocks } from '../relied_locks.ts';
import {
  type ClaimWrite,
  inventoriesToRemove,
  isNowhere,
  namedByAffinity,
  namedIds,
  newInventories,
  reliedProviders,
} from './claim_write.ts';
import { seenRows } from './read_allocations.ts';

/*
 * Guards that few claims need, as parts of the statement that writes the claims: the rows that they lock, and the
 * claims that fail them (the parts of table `lost`).
 */

const guarded = sql`select uuid from consumer where generation is not null`;

/**
 * Locks the records of the consumers whose generation is guarded.
 *
 * @param named the UUIDs of the guarded consumers that the claims do not write
 * @param after the table of the rows that are locked before
 */
export const lockedConsumers = (named: readonly string[], after: RawBuilder<unknown>): RawBuilder<unknown> => sql`
    locked_consumer as materialized (
      select id, uuid, generation from consumers where ${named.length === 0 ? sql`uuid in (${guarded})` : sql`uuid = any(array(${guarded} union select unnest(${named}::text[])))`}
        and (select count(*) from ${after}) is not null
      order by uuid for update
    ),`;

/** Claims on consumers that now have another generation, or another record. */
export const lostGenerations = sql`
      union all
      select c.claim, 'consumer' from consumer c left join locked_consumer l on l.uuid = c.uuid
      where c.generation is not null and (l.generation is distinct from c.generation or l.id <> c.record_id)`;

/** Claims that create a consumer which now has a record. */
export const lostNew = sql`
      union all
      select claim, 'consumer' from consumer where generation is null and not (emptied and has_old)
        and exists (select from consumers k where k.uuid = consumer.uuid)`;

/** Claims that remove old allocations of a consumer without a record, if the consumer now has a record. */
export const lostEmptied = sql`
      union all
      select claim, 'consumer' from consumer where generation is null and emptied
        and exists (select from consumers k where k.uuid = consumer.uuid)`;

/**
 * The consumers whose allocations must not have changed since they were read. Most batches have no such consumer, and their
 * statement lacks these parts.
 */
const seenConsumers = (claims: readonly ClaimWrite[]) =>
  claims.flatMap(({ consumers }, claim) =>
    consumers.flatMap(({ uuid, seen }) => (seen === undefined ? [] : [{ claim, uuid, seen }])),
  );

/**
 * Locks the allocations of these consumers, after all other rows, and adds a table of the allocations that were read.
 */
export function lockedAllocations(claims: readonly ClaimWrite[]): RawBuilder<unknown> {
  const consumers = seenConsumers(claims);
  if (consumers.length === 0) return sql``;
  const uuids = consumers.flatMap(({ uuid, seen }) => seen.map(() => uuid));
  return sql`
    locked_allocation as materialized (
      select id, consumer_id, resource_provider_id as provider_id, resource_class_id as class_id, used from allocations
      where consumer_id = any(${consumers.map(({ uuid }) => uuid)}::text[])
        and (select count(*) from locked_consumer) is not null
      order by id for update
    ),
    seen_allocation as materialized (
      select * from rows from (unnest(${uuids}::text[]), ${seenRows(consumers.flatMap(({ seen }) => seen))}
      ) as s (consumer_id, id, provider_id, class_id, used)
    ),`;
}

/** Claims on consumers whose allocations have changed since they were read. */
export function lostSeenAllocations(claims: readonly ClaimWrite[]): RawBuilder<unknown> {
  const consumers = seenConsumers(claims);
  if (consumers.length === 0) return sql``;
  return sql`
      union all
      select c.claim, 'consumer' from unnest(${consumers.map(({ claim }) => claim)}::integer[],
        ${consumers.map(({ uuid }) => uuid)}::text[]) as c (claim, uuid)
      where c.uuid in (
        select coalesce(l.consumer_id, s.consumer_id) from locked_allocation l full join seen_allocation s
          on l.id = s.id and l.consumer_id = s.consumer_id and l.provider_id = s.provider_id and l.class_id = s.class_id
            and l.used = s.used
        where l.id is null or s.id is null
      )`;
}

/**
 * Locks classes, so that they cannot be deleted or renamed meanwhile. A rename locks the class and then the consumers that have it,
 * so that their entity tags are computed again: so classes are locked after the providers and before the consumers.
 */
export const lockedClasses = (claims: readonly ClaimWrite[]): RawBuilder<unknown> => sql`
    kept_class as materialized (${namedIds(claims, 'keptClasses')}),
    locked_class as materialized (
      select id, name from resource_classes where id in (select id from kept_class)
        and (select count(*) from locked_provider) is not null
      order by id for key share
    ),`;

/** Shares the locks of the names of custom classes. @param after the table of the rows that are locked before */
export const lockedNames = (claims: readonly ClaimWrite[], after: RawBuilder<unknown>): RawBuilder<unknown> => sql`
    locked_name as materialized (
      ${sharedLocks(
        'class',
        claims.flatMap(({ customClasses = [] }) => customClasses.map(({ id }) => id)),
        sql`where (select count(*) from ${after}) is not null`,
      )}
    ),`;

/** Claims that rely on the names of classes which now have other names, or were deleted. */
export const lostClasses = sql`
      union all
      select claim, 'name' from kept_class where (id, name) not in (select id, name from locked_class)`;

/** As `lostClasses`, for traits, whose names an earlier statement locks. */
export const lostTraits = (claims: readonly ClaimWrite[]): RawBuilder<unknown> => sql`
      union all
      select n.claim, 'name' from (${namedIds(claims, 'customTraits')}) as n
      where not exists (select from traits r where r.id = n.id and r.name = n.name)`;

/**
 * As `lostClasses`, without a lock of the rows. The names are compared after all other rows are locked: a rename may have been committed
 * while the statement waited for these locks.
 *
 * @param locked the table of the rows that are locked last
 */
export function lostNames(claims: readonly ClaimWrite[], locked: RawBuilder<unknown>): RawBuilder<unknown> {
  const all = claims.flatMap(({ customClasses = [] }) => customClasses);
  const named = [...new Map(all.map((each) => [`${each.id} ${each.name}`, each])).values()];
  return sql`
      union all
      select n.claim, 'name' from (${namedIds(claims, 'customClasses')}) as n
      where n.id = any((
        select renamed_classes(${named.map(({ id }) => id)}::integer[], ${named.map(({ name }) => name)}::text[])
        from (select count(*) from ${locked}) as last where last.count is not null
      )::integer[])`;
}

/** Tables of the inventories to write and to remove. */
export const inventoryTables = (claims: readonly ClaimWrite[]): RawBuilder<unknown> => sql`
    inventory as (${newInventories(claims)}),
    inventory_to_remove as (${inventoriesToRemove(claims)}),`;

/**
 * Claims that relied on providers in which more than the usage has changed since. An earlier statement locks the providers that the claims
 * take from, and the trees of the other providers: this statement sees changes that were committed while that one waited.
 */
export const lostReliedOn = (claims: readonly ClaimWrite[], judgedOn: FleetSnapshot): RawBuilder<unknown> => sql`
      union all
      select claim, 'provider' from (${reliedProviders(claims)}) as r
      where (provider_id = any(array(${inventoryChangesSince(judgedOn)}))) is not false`;

/** How many locks all consumers share: a transaction may need many locks, and the server has room for a few thousand. */
const relationLocks = 1024;
/** The first key of these locks; the second is the number of the lock. */
const relationLock = 1_430_000;

/**
 * Locks the consumers that claims by query name, and the consumers whose queries name other consumers; where a named consumer has no
 * record, also all consumers that the claims make. The lock comes before the statement that reads where the consumers are placed: so of
 * two claims that name each other's consumers, the later one sees what the earlier one has written.
 */
export function lockRelated(claims: readonly ClaimWrite[], wait: LockWait | undefined): readonly RawBuilder<unknown>[] {
  const related = claims.flatMap(({ relatedConsumers = [] }) => relatedConsumers);
  // They are inserted in two parts of the statement, so the order of their UUIDs alone does not keep two transactions from a circle.
  const made = claims.some(({ affinity = [] }) => affinity.some(isNowhere))
    ? claims.flatMap(({ consumers }) => consumers.flatMap(({ uuid, generation }) => (generation === null ? uuid : [])))
    : [];
  const numbers = new Set([...related, ...made].map(relationLockNumber));
  if (numbers.size === 0) return [];
  const ordered = [...numbers].sort((a, b) => a - b);
  return [
    sql`select pg_advisory_xact_lock(${sql.lit(relationLock)}, number) from unnest(${ordered}::integer[]) as number
      ${wait === undefined ? sql`` : sql`where (${limitLockWait(wait)}) is not null`}`,
  ];
}

/**
 * The second key of the lock of a consumer: the last digits of its UUID, which are random and need no hash, unlike the ids of projects
 * (`projectLockNumber`). Processes of two releases run side by side, so it never changes.
 */
const relationLockNumber = (uuid: string): number => Number.parseInt(uuid.slice(-6), 16) % relationLocks || 0;

/**
 * Makes records of consumers that have nothing, so that no other transaction can make such a record before this transaction ends. It
 * removes the records again. A consumer that now has a record gets none. @param after the table of the rows that are locked before
 */
export const namedRecords = (uuids: readonly string[], after: RawBuilder<unknown>): RawBuilder<unknown> => sql`
    named_record as (
      insert into consumers (uuid, project_id, user_id, generation)
      select uuid, 0, 0, 0 from unnest(${uuids}::text[]) as uuid where (select count(*) from ${after}) is not null
      order by uuid collate "C" on conflict (uuid) do nothing returning uuid
    ),`;

/**
 * Claims that name consumers which are not as they were.
 *
 * @param isRecorded whether the statement has the table `locked_consumer`
 * @param hasNew whether it has the table `named_record`
 */
export const lostAffinity = (
  claims: readonly ClaimWrite[],
  { isRecorded, hasNew }: { readonly isRecorded: boolean; readonly hasNew: boolean },
): RawBuilder<unknown> => sql`
      union all
      select n.claim, 'consumer' from (${namedByAffinity(claims)}) as n
      where ${isRecorded ? sql`(n.generation is not null and (n.generation, n.record_id) not in (select generation, id from locked_consumer)) or` : sql``}
        ${hasNew ? sql`(n.generation is null and n.provider_ids = '' and n.uuid not in (select uuid from named_record)) or` : sql``}
        n.provider_ids <> coalesce((
        select string_agg(distinct resource_provider_id::text collate "C", ',' order by resource_provider_id::text collate "C")
        from allocations where consumer_id = n.uuid), '')`;

/**
 * What other transactions may do after claims were judged and before these are written, without a failed guard: claim on
 * the same providers as long as enough room is left, and delete allocations there.
 */
export type Leeway = {
  /** What the claims were judged by: a snapshot of the fleet, and in addition these transactions. */
  readonly since: FleetSnapshot;
  readonly known: readonly string[];
  /** How much other transactions may have taken of each class of each provider that the claims take from. */
  readonly rooms: readonly { readonly providerId: number; readonly classId: number; readonly room: number }[];
};

/**
 * Tables of the statement that writes claims: `overtaken` has the providers of `guard` that other transactions changed
 * by more than the leeway. An earlier statement locks the providers: a transaction that raised usages of these
 * providers has committed when this statement begins, and no other transaction can raise them until this one ends.
 */
export const overtakenProviders = ({ since, known, rooms }: Leeway): RawBuilder<unknown> => sql`
    change as materialized (
      select provider_id, whole, class_ids, used_deltas from (${changesSince(since)}) as since
      where xid <> all(${known}::xid8[]) and (provider_id is null or provider_id in (select provider_id from guard))
    ),
    room as (
      select * from unnest(${rooms.map(({ providerId }) => providerId)}::integer[],
        ${rooms.map(({ classId }) => classId)}::integer[], ${rooms.map(({ room }) => room)}::float8[]
      ) as r (provider_id, class_id, room)
    ),
    moved as (
      select c.provider_id, m.class_id, sum(m.delta) as delta from change c, unnest(c.class_ids, c.used_deltas) as m (class_id, delta)
      group by 1, 2
    ),
    overtaken as materialized (
      select provider_id from change where whole
      union all
      select provider_id from moved join room using (provider_id, class_id) where moved.delta > room.room
      union all
      select provider_id from guard where exists (select from change where provider_id is null) or ${isLogTooShort(since)}
    ),`;

/** Table `lost` of a batch with claims that have waited: such a claim after one that is not written is not written either. */
export const lostAfterEarlier = (inOrder: readonly number[]): RawBuilder<unknown> => sql`
    lost as materialized (
      select claim, what from lost_itself
      union all
      select claim, 'earlier claim' from unnest(${inOrder}::integer[]) as later (claim)
      where claim > (select min(claim) from lost_itself where claim = any(${inOrder}::integer[]))
    ),`;
