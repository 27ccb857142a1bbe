import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import type { LockWait } from '../../engine/slow_lane.ts';
import { usagesAreReleasedWhole } from '../usage_history.ts';
import { countedReleases, releasesAreAccounted } from './project_usages.ts';
import { hasSeen, type NamedAllocation } from './read_allocations.ts';

/**
 * Deletes all allocations of some consumers, and the consumers that had some, whatever their generations are. A record without
 * allocations, which OpenStack Placement may leave behind, stays. Each consumer is deleted in one transaction with its allocations.
 *
 * @param wait how long to wait for each lock. Without it, the time limit of a statement applies.
 * @param isCounting whether usages are counted, as far as the process knows
 * @param onDeleted called with what a transaction has deleted; another transaction may follow, and fail
 * @returns how many allocations each consumer had; consumers without allocations are missing.
 * @throws `lockNotAvailable` if another transaction holds one of the consumers for too long; then nothing of its transaction was
 *   deleted.
 */
export async function deleteAllocations(
  { transaction }: Pick<Database, 'transaction'>,
  consumerUuids: readonly string[],
  wait?: LockWait,
  onDeleted: (deleted: Deleted) => void = () => {},
  isCounting = false,
): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  const remove = async (uuids: readonly string[], statements: readonly RawBuilder<unknown>[]): Promise<string[]> => {
    const rows =
      (await transaction([...statements, removeLocked(uuids, statements.length > 1, isCounting)], wait)).at(-1) ?? [];
    const left: string[] = [];
    const released: ReleasedRow[] = [];
    // The statement is the one below: these are its columns.
    for (const row of rows as readonly (ReleasedRow | LeftRow)[]) {
      if (row.xid === null) left.push(row.uuid);
      else {
        counts.set(row.uuid, (counts.get(row.uuid) ?? 0) + 1);
        released.push(row);
      }
    }
    onDeleted({ counts, xid: released[0]?.xid, released });
    return left;
  };
  const old = await remove(consumerUuids, [lockConsumers(consumerUuids, true)]);
  if (old.length > 0) await remove(old, [lockOld(old), lockConsumers(old, false)]);
  return counts;
}

/** What a transaction has deleted. */
export type Deleted = {
  /** How many allocations of each consumer were deleted by this transaction and by earlier ones. */
  readonly counts: ReadonlyMap<string, number>;
  /** The transaction; undefined if it has deleted nothing. */
  readonly xid: string | undefined;
  readonly released: readonly { readonly providerId: number; readonly classId: number; readonly used: number }[];
};

/** A deleted allocation, or with null the consumer of one that is left. */
type ReleasedRow = Deleted['released'][number] & { readonly uuid: string; readonly xid: string };
type LeftRow = { readonly uuid: string; readonly xid: null };

/**
 * Locks the consumers, in a separate statement: the next statement has a newer snapshot, and sees everything that earlier
 * transactions wrote. Later claims find no consumer, so their guard fails.
 *
 * @param isWhole whether all released allocations are of consumers that this statement locks
 */
const lockConsumers = (uuids: readonly string[], isWhole: boolean) => sql`
    with locked as (select uuid from consumers where uuid = any(${uuids}::text[]) order by uuid for update)
    select set_config('placement.locked_consumers', coalesce(array_agg(uuid), '{}')::text, true)
      ${isWhole ? sql`, ${usagesAreReleasedWhole}` : sql``} from locked`;

/**
 * Locks old allocations without a consumer record, before the consumers. The online data migration or a claim may create the record:
 * that transaction has either committed before the consumers are locked, or finds the allocations deleted. If a consumer now has its
 * record, the record is locked first, as claims do.
 */
const lockOld = (uuids: readonly string[]) => sql`
    select id from allocations a where consumer_id = any(${uuids}::text[])
      and not exists (select from consumers c where c.uuid = a.consumer_id offset 0) order by id for update`;

/**
 * Deletes the consumers that were locked. A consumer that was created after the lock is not deleted: the statement might not see the
 * newest allocations of such a consumer, and would leave them without a consumer.
 *
 * @param withOld whether to delete allocations without a record, which were locked; otherwise the result names their consumers
 */
function removeLocked(uuids: readonly string[], withOld: boolean, isCounting: boolean): RawBuilder<unknown> {
  const locked = sql`(select unnest(current_setting('placement.locked_consumers')::text[]))`;
  // The offset makes the server look up each consumer separately: a plan from a time with few consumers read all, ten
  // times as slow.
  const orIsOld = sql`or not exists (select from consumers c where c.uuid = a.consumer_id offset 0)`;
  const left = sql`
    union all
    select uuid, null, null, null, null from unnest(${uuids}::text[]) as u (uuid)
    where uuid not in ${locked} and exists (select from allocations where consumer_id = uuid)`;
  return sql`
    with released as (
      delete from allocations a where consumer_id = any(${uuids}::text[]) and (${releasesAreAccounted(isCounting)}) is not null
        and (consumer_id in ${locked} ${withOld ? orIsOld : sql``})
      returning consumer_id, resource_provider_id, resource_class_id, used
    ),
    ${isCounting ? sql`${countedReleases()},` : sql``}
    gone as (delete from consumers where uuid = any(array(select consumer_id from released)))
    select consumer_id as uuid, resource_provider_id as "providerId", resource_class_id as "classId", used, pg_current_xact_id()::text as xid
    from released ${withOld ? sql`` : left}`;
}

/**
 * Deletes a consumer and all its allocations, if these are the ones that the caller has seen, and the consumer still
 * has the same generation. It locks the consumer as above. It also locks the allocations, since some writes do not
 * raise the consumer's generation. Allocations of deleted providers or classes are not compared, and are deleted with
 * the others.
 *
 * @returns how many allocations were deleted; 0 if they have changed since they were read
 */
export async function deleteSeenAllocations(
  { write }: Pick<Database, 'write'>,
  consumerUuid: string,
  seen: { readonly generation: number | null; readonly allocations: readonly NamedAllocation[] },
  isCounting = false,
): Promise<number> {
  const lock = sql`select id from consumers where uuid = ${consumerUuid} for update`;
  const lockAllocations = sql`select id from allocations where consumer_id = ${consumerUuid} order by id for update`;
  const remove = sql`
    with same as materialized (
      select where ${hasSeen(consumerUuid, seen.allocations)}
        and (select generation from consumers where uuid = ${consumerUuid}) is not distinct from ${seen.generation}::integer
    ), gone as (
      delete from consumers where uuid = ${consumerUuid} and exists (select from same)
    ), released as (
      delete from allocations where consumer_id = ${consumerUuid} and exists (select from same)
        and (${releasesAreAccounted(isCounting)}) is not null returning id, consumer_id, resource_class_id, used
    )${isCounting ? sql`, ${countedReleases()}` : sql``}
    select id from released`;
  const [, , removed] = await write([lock, lockAllocations, remove]);
  return removed.length;
}
