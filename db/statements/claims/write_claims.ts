import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { serverRun } from '../../engine/server_state.ts';
import type { LockWait } from '../../engine/slow_lane.ts';
import { utcNow } from '../../engine/time.ts';
import { type FleetSnapshot, inventoryChangesSince } from '../../fleet/change_log.ts';
import { leavesNoFormer } from '../consumers/consumer_row.ts';
import { consumerTagsAreWritten } from '../entity_tags.ts';
import { raised } from '../generations.ts';
import { andLimitLockWait, limitLockWait, lockProviders, lockProvidersFirst } from '../locked_rows.ts';
import { lockTrees, sharedLocks } from '../relied_locks.ts';
import {
  inventoryTables,
  type Leeway,
  lockedAllocations,
  lockedClasses,
  lockedConsumers,
  lockedNames,
  lockRelated,
  lostAffinity,
  lostAfterEarlier,
  lostClasses,
  lostEmptied,
  lostGenerations,
  lostNames,
  lostNew,
  lostReliedOn,
  lostSeenAllocations,
  lostTraits,
  namedRecords,
  overtakenProviders,
} from './claim_guards.ts';
import {
  type ClaimWrite,
  type ConsumerWrite,
  claimedConsumers,
  isAbsent,
  isNowhere,
  newAllocations,
  providerGuards,
  providerIds,
  takesFromEach,
  termAndNameParts,
} from './claim_write.ts';
import {
  type CountedWrite,
  countedChanges,
  countedTables,
  type LimitGuard,
  lockRaised,
  lostLimits,
  usageColumn,
  usageReader,
  usagesAreCounted,
} from './project_usages.ts';
import { endedWaiting, lockLines, lostWaiting } from './waiting.ts';

/**
 * The guard that a claim failed; undefined if the claim was written. `owner`: a project, user or consumer type does not
 * exist yet. `limit`: it exceeds a limit. `usages`: what a limited project uses is in doubt. `line`: it is not the first one of its line.
 * `earlier claim`: a claim before it was not written.
 */
type LostGuard = 'provider' | 'consumer' | 'name' | 'owner' | 'limit' | 'usages' | 'line' | 'earlier claim' | undefined;

/** The outcome of the claims of a batch. */
export type WrittenClaims = {
  /** For each claim the guard that it failed. */
  readonly lost: readonly LostGuard[];
  /** The transaction in which the other claims were written. */
  readonly xid: string;
  /** Whether other transactions changed the providers after the claims were judged, even if all claims were written. */
  readonly isContested: boolean;
  /** By id, the generations that the providers have now; only present if claims rely on more than generations. */
  readonly generations: ReadonlyMap<number, number>;
  /** When the terms of the claims expire, by the UUIDs of the consumers, in milliseconds since 1970. */
  readonly expiresAtMs: ReadonlyMap<string, number>;
  /**
   * By the UUIDs of the consumers that were made: how many generations the former consumers had; only present where claims
   * rely on more than the providers of their allocations.
   */
  readonly formerGenerations: ReadonlyMap<string, number>;
  /** How much of what a limit is of was used before the claims; 0 if no claim of the batch has that limit among its guards. */
  readonly limitedUsage: (guard: LimitGuard) => number;
};

/** What the claims were judged by, and how they are written. */
export type WriteOptions = {
  /** How long to wait for each lock. Without it, the time limit of a statement applies. */
  readonly wait?: LockWait;
  /**
   * The snapshot of the fleet by which the claims were judged. On another run of the server all guards of providers fail:
   * after a failover that lost transactions, the same generations may belong to other content. With null, neither the
   * run nor changes of inventories are checked.
   */
  readonly judgedOn?: FleetSnapshot | null;
  /** What other transactions may do to the providers meanwhile. Without it they may do nothing. */
  readonly leeway?: Leeway | undefined;
  /**
   * Whether consumers that should be new may have a record. If so, the statement checks this, and only the claim of such a
   * consumer fails its guard; otherwise a unique violation would fail the whole batch. The check costs time for each claim,
   * so it is optional.
   */
  readonly mayExist?: boolean;
  /** Consumer types that do not count for limits. */
  readonly uncountedTypes?: readonly string[];
};

type WrittenRow = {
  readonly xid: string;
  readonly isContested: boolean;
  readonly claim: number | null;
  readonly what: LostGuard;
  readonly generations?: Readonly<Record<string, number>> | null;
  readonly expiresAtMs?: Readonly<Record<string, number>> | null;
  readonly formerGenerations?: Readonly<Record<string, number>> | null;
  readonly limitUsages?: Readonly<Record<string, number>> | null;
};

/**
 * Writes many claims by one statement. Each claim has its own guards: a claim that fails a guard is not written. The parts of
 * the statement depend on the claims; usual_statement.sql is its text where all consumers are new.
 *
 * The statement locks the guarded providers and then the consumers, in the order of their keys, and checks the
 * generations of the newest versions of these rows. It reads all other rows in its snapshot, which may be older: so
 * every change of a consumer's allocations is guarded by the consumer's generation. If allocations must be those that
 * were seen, their rows are locked as well.
 *
 * Inventories are guarded by the generations of their providers. Some programs change inventories without raising
 * the generations, so the log of inventory changes is read as well: it shows what was committed after the claims were judged
 * and before the statement began. For claims that rely on more than generations, earlier statements lock the providers, and
 * the other trees and traits that the claims rely on (relied_locks.ts): so this statement begins after the changes that it would
 * have had to wait for.
 *
 * @throws a unique violation if a consumer that should be new exists; `lockNotAvailable` if another transaction holds a
 *   lock that one of the claims needs; a serialization failure if a row is not the one that was compared. Then nothing was
 *   written.
 */
export async function writeClaims(
  { transaction }: Pick<Database, 'transaction'>,
  claims: readonly ClaimWrite[],
  { wait, judgedOn = null, leeway, mayExist = false, uncountedTypes = [] }: WriteOptions = {},
): Promise<WrittenClaims> {
  const consumers = claims.flatMap((claim) => claim.consumers);
  const emptied = consumers.filter(isEmptiedOldOne).map(({ uuid }) => uuid);
  const absent = consumers.filter(isAbsent).map(({ uuid }) => uuid);
  const named = claims.flatMap(({ affinity = [] }) => affinity);
  const namedWithRecord = named.flatMap(({ uuid, generation }) => (generation === null ? [] : uuid));
  const namedWithout = [...new Set(named.filter(isNowhere).map(({ uuid }) => uuid))];
  // Parts without rows are left out, since each part costs its start and its triggers. Most batches need none of them.
  const parts = {
    inventories: claims.some(({ inventories }) => inventories.length > 0),
    customClasses: claims.some((claim) => (claim.customClasses ?? []).length > 0),
    customTraits: claims.some((claim) => (claim.customTraits ?? []).length > 0),
    keptClasses: claims.some((claim) => (claim.keptClasses ?? []).length > 0),
    known: consumers.some(({ generation, hasOldAllocations }) => generation !== null || hasOldAllocations),
    recorded:
      namedWithRecord.length > 0 || consumers.some(({ generation, seen }) => generation !== null || seen !== undefined),
    emptied: emptied.length > 0,
    removed: consumers.some(({ generation, allocations }) => generation !== null && allocations.length === 0),
    reliedOn: claims.some(({ reliedOn }) => reliedOn !== undefined),
    affinity: named.length > 0,
    namedRecords: namedWithout.length > 0,
    counted: claims.some(({ counted }) => counted !== undefined),
  };
  const counted = claims.map(({ counted = uncounted }) => counted);
  const waitingRows = claims.flatMap(({ waitingRow }, index) =>
    waitingRow === undefined ? [] : [{ ...waitingRow, index }],
  );
  const stored = waitingRows.filter(({ isStored }) => isStored);
  const ended = waitingRows.length > 0 ? sql`, ${endedWaiting(waitingRows, lostClaims)}` : sql``;
  const inOrder = claims.flatMap((claim, index) => (claim.inOrder === true ? [index] : []));
  const consumerParts = termAndNameParts(consumers, parts.known);
  const lockedBeforeNames = parts.keptClasses ? sql`locked_class` : sql`locked_provider`;
  const lockedBeforeConsumers = parts.customClasses ? sql`locked_name` : lockedBeforeNames;
  const statement = sql<WrittenRow>`
    with consumer as materialized (${claimedConsumers(claims)}),
    allocation as (${newAllocations(claims)}),
    locked_provider as materialized (
      select id, coalesce(generation, 0) as generation from resource_providers where id = any(${providerIds(claims)}::integer[])
        ${andLimitLockWait(wait)}
      order by id for no key update
    ),
    guard as materialized (
      select g.*, p.generation as present from (${providerGuards(claims)}) as g left join locked_provider p on p.id = g.provider_id
    ),
    ${parts.inventories ? inventoryTables(claims) : sql``}
    ${parts.keptClasses ? lockedClasses(claims) : sql``}
    ${parts.customClasses ? lockedNames(claims, lockedBeforeNames) : sql``}
    ${parts.recorded ? lockedConsumers(namedWithRecord, lockedBeforeConsumers) : sql``}
    ${parts.namedRecords ? namedRecords(namedWithout, parts.recorded ? sql`locked_consumer` : lockedBeforeConsumers) : sql``}
    ${lockedAllocations(claims)}
    ${leeway === undefined ? sql`` : overtakenProviders(leeway)}
    ${parts.counted ? countedTables(counted, uncountedTypes) : sql``}
    ${inOrder.length > 1 ? sql`lost_itself` : sql`lost`} as materialized (
      select claim, 'provider' as what from guard
      where present is null ${judgedOn === null ? sql`` : sql`or ${mayHaveOtherInventories(judgedOn)}`}
        or present <> generation ${leeway === undefined ? sql`` : sql`and provider_id in (select provider_id from overtaken)`}
      ${parts.recorded ? lostGenerations : sql``}
      union all
      select claim, 'consumer' from consumer where generation is null and not has_old
        and exists (select from allocations where consumer_id = consumer.uuid)
      ${mayExist ? lostNew : sql``}
      ${parts.emptied ? lostEmptied : sql``}
      union all
      select claim, 'owner' from consumer where not emptied
        and (project_id is null or user_id is null or (type_name is not null and type_id is null))
      ${parts.customClasses ? lostNames(claims, parts.recorded ? sql`locked_consumer` : sql`locked_name`) : sql``}
      ${parts.customTraits ? lostTraits(claims) : sql``}
      ${parts.keptClasses ? lostClasses : sql``}
      ${lostSeenAllocations(claims)}
      ${parts.affinity ? lostAffinity(claims, { isRecorded: parts.recorded, hasNew: parts.namedRecords }) : sql``}
      ${parts.reliedOn && judgedOn !== null ? lostReliedOn(claims, judgedOn) : sql``}
      ${lostLimits(counted)}${lostWaiting(stored)}
    ),${inOrder.length > 1 ? lostAfterEarlier(inOrder) : sql``}
    won as (select * from consumer where claim <> all(${lostClaims})),
    ${raisedProviders}
    ${parts.inventories ? writtenInventories : sql``}
    ${parts.known ? rewrittenConsumers : sql``}
    ${parts.removed ? removedConsumers : sql``}
    created as (
      insert into consumers (uuid, project_id, user_id, consumer_type_id, generation, created_at, etag)
      select uuid, ${absent.length > 0 ? sql`coalesce(project_id, 0), coalesce(user_id, 0)` : sql`project_id, user_id`}, type_id, 1, ${utcNow}, etag
      from won where generation is null and not (emptied and has_old)
      order by uuid collate "C" -- so that two statements that make the same ones do not wait for each other in a circle
      ${parts.reliedOn ? sql`returning id, uuid, generation` : consumerParts.returning}
    ),
    inserted as (
      insert into allocations (resource_provider_id, resource_class_id, consumer_id, used, created_at)
      select provider_id, class_id, consumer_uuid, used, ${utcNow}
      from allocation where claim <> all(${lostClaims})
    )${parts.counted ? sql`, ${countedChanges(lostClaims)}` : sql``}${ended}${consumerParts.written}
    select pg_current_xact_id()::text as xid, lost.claim, lost.what,
      exists (select from guard where present <> generation) as "isContested"
      ${
        parts.reliedOn
          ? sql`, (select json_object_agg(id, generation) from bumped) as generations,
      former_generations(array(select uuid from created)) as "formerGenerations"`
          : sql``
      }${consumerParts.columns}${usageColumn(counted)}
    from (${consumerTagsAreWritten}${claims.every(takesFromEach) ? generationsAreLogged : sql``}${parts.counted ? sql`, ${usagesAreCounted}` : sql``}) as settings left join lost on true
    where ${orLostRace(parts)}`;
  // The log is read after the rows were locked, so that it has what was committed while this transaction waited for them.
  const readsLog = parts.reliedOn || parts.inventories || leeway !== undefined;
  const before = locksBefore(claims, counted, { wait, stored, readsLog });
  const after = [
    ...(parts.emptied ? removeLateConsumers(emptied) : []),
    ...(absent.length + namedWithout.length > 0 ? [removeAbsent([...absent, ...namedWithout])] : []),
    ...consumerParts.after,
  ];
  const results = await transaction([...before, statement, ...after], { isSlow: wait?.isSlow === true });
  const rows = (results[before.length] ?? []) as readonly WrittenRow[]; // the rows of `statement`
  const limits = counted.flatMap(({ limits }) => limits);
  return writtenClaims(claims, limits, rows);
}

/**
 * The statements before the statement of the claims. They take locks first: the statement itself would wait for them with an old snapshot.
 *
 * @param stored the rows of claims that wait which must be stored by now
 * @param readsLog whether the statement reads what other transactions did to the providers
 */
function locksBefore(
  claims: readonly ClaimWrite[],
  counted: readonly CountedWrite[],
  {
    wait,
    stored,
    readsLog,
  }: {
    readonly wait: LockWait | undefined;
    readonly stored: Parameters<typeof lockLines>[0];
    readonly readsLog: boolean;
  },
): readonly RawBuilder<unknown>[] {
  const providers = providerIds(claims);
  const locksFirst = lockProvidersFirst(providers, wait);
  const projectWait =
    wait === undefined || locksFirst.length > 0
      ? wait
      : { lockTimeoutMs: Math.max(wait.lockTimeoutMs, projectTimeoutMs) };
  const projects = lockRaised(
    counted,
    projectWait === undefined ? sql`` : sql`where (${limitLockWait(projectWait)}) is not null`,
  );
  // While a claim waits long for a provider, it holds no project.
  const ownLocks =
    locksFirst.length > 0
      ? [...locksFirst, ...projects]
      : [...projects, ...(readsLog ? [lockProviders(providers, wait)] : [])];
  const trees = claims.flatMap(({ reliedOnTrees = [] }) => reliedOnTrees);
  const traits = claims.flatMap(({ customTraits = [] }) => customTraits.map(({ id }) => id));
  const changed = claims.flatMap(({ inventories }) => inventories.map(({ providerId }) => providerId));
  const relied = [
    ...(trees.length + changed.length === 0 ? [] : [lockTrees(trees, sql`id = any(${changed}::integer[])`)]),
    ...(traits.length === 0 ? [] : [sharedLocks('trait', traits)]),
  ];
  return [...lockLines(stored), ...lockRelated(claims, wait), ...ownLocks, ...relied];
}

/** The outcomes of the claims, from the rows of the statement. */
function writtenClaims(
  claims: readonly ClaimWrite[],
  limits: readonly LimitGuard[],
  rows: readonly WrittenRow[],
): WrittenClaims {
  const lost: LostGuard[] = claims.map(() => undefined);
  for (const { claim, what } of rows) {
    // A claim that was judged by something else than is there now may exceed no limit when it is judged again.
    if (claim !== null && (lost[claim] === undefined || !isJudgedLast(what))) lost[claim] = what;
  }
  const [first] = rows;
  const generations = new Map(
    Object.entries(first?.generations ?? {}).map(([id, generation]) => [Number(id), generation]),
  );
  return {
    lost,
    xid: first?.xid ?? '0',
    isContested: first?.isContested ?? false,
    generations,
    expiresAtMs: new Map(Object.entries(first?.expiresAtMs ?? {})),
    formerGenerations: new Map(Object.entries(first?.formerGenerations ?? {})),
    limitedUsage: usageReader(limits, first?.limitUsages),
  };
}

const isJudgedLast = (guard: LostGuard): boolean =>
  guard === 'limit' || guard === 'usages' || guard === 'earlier claim';

const uncounted: CountedWrite = { usages: [], limits: [] };

/**
 * How long a batch that holds no other lock waits for each project. Other processes hold a project until their commit is on the disk, which
 * may take longer than the wait for a row.
 */
const projectTimeoutMs = 100;

/**
 * Whether the provider of a guard may have other inventories than at a snapshot, even with the same generation. A null
 * among the changed providers means all.
 */
const mayHaveOtherInventories = (
  judgedOn: FleetSnapshot,
): RawBuilder<boolean> => sql`(select ${serverRun} <> ${judgedOn.serverRun})
        or (provider_id = any(array(${inventoryChangesSince(judgedOn)}))) is not false`;

/**
 * Tells the trigger of migration 006 that the change log has a row for each provider whose generation is raised, namely the row of the
 * amounts taken. A second row for each provider would take 4 to 6 % of the database's CPU time for a claim.
 */
const generationsAreLogged = sql`, set_config('placement.generations', 'logged', true)`;

const isEmptiedOldOne = (consumer: ConsumerWrite): boolean =>
  consumer.generation === null && consumer.hasOldAllocations && consumer.allocations.length === 0;

/**
 * Deletes consumers that the online data migration created for old allocations while the statement waited to delete
 * the allocations. That statement does not see such a consumer, but the later statements of the transaction do. The consumer
 * is locked first, so that the deletion sees allocations that a claim has added meanwhile.
 *
 * The migration creates consumers with generation 0. A consumer with another generation was created or changed by a
 * request that this claim does not know of. The claim has just deleted its allocations, so the transaction must fail:
 * inserting the row again is a unique violation, as it is for a claim that creates a consumer which exists.
 */
const removeLateConsumers = (uuids: readonly string[]) => [
  sql`select id from consumers where uuid = any(${uuids}::text[]) order by uuid for update`,
  sql`insert into consumers (uuid, project_id, user_id)
    select uuid, project_id, user_id from consumers c where uuid = any(${uuids}::text[]) and generation <> 0
      and not exists (select from allocations a where a.consumer_id = c.uuid)`,
  sql`delete from consumers c where c.uuid = any(${uuids}::text[])
    and not exists (select from allocations a where a.consumer_id = c.uuid)`,
];

/**
 * Removes the records that the statement made for consumers which must have none. The records were made as locks: no other
 * transaction can make such a record at the same time, and nothing else of such a consumer could be locked.
 */
const removeAbsent = (uuids: readonly string[]) => sql`
  delete from consumers where uuid = any(${uuids}::text[]) and xmin = pg_current_xact_id()::xid and ${leavesNoFormer}`;

/*
 * What the statement that writes claims does to rows that exist already, as parts of it, for the claims that lost no guard.
 */

/** As ARRAY the lost claims are read once for each part. A hashed subquery would cost more for a small batch. */
const lostClaims = sql`array(select claim from lost)`;

/** Raises the generations of the providers, each for all claims together. */
const raisedProviders = sql`to_bump as materialized (
      select provider_id, present, sum(bump)::integer as bump from guard where claim <> all(${lostClaims}) group by 1, 2
    ),
    bumped as (
      update resource_providers p set generation = ${raised(sql`p.generation`, sql`g.bump`)}, updated_at = ${utcNow}
      from to_bump g where p.id = g.provider_id and coalesce(p.generation, 0) = g.present
      returning p.id, p.generation
    ),`;

/** Writes and removes the inventories of reshapes. */
const writtenInventories = sql`
    removed_inventories as (
      delete from inventories i using inventory_to_remove r
      where i.resource_provider_id = r.provider_id and i.resource_class_id = r.class_id
        and r.claim not in (select claim from lost)
    ),
    put_inventories as (
      insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
        allocation_ratio, created_at)
      select provider_id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, ${utcNow}
      from inventory where claim not in (select claim from lost)
      on conflict (resource_provider_id, resource_class_id) do update set total = excluded.total,
        reserved = excluded.reserved, min_unit = excluded.min_unit, max_unit = excluded.max_unit,
        step_size = excluded.step_size, allocation_ratio = excluded.allocation_ratio, updated_at = ${utcNow}
    ),`;

/** Whether `consumers c` is the record that a claim in `won` was judged by. */
const isWon = sql`c.uuid = won.uuid and c.generation = won.generation and c.id = coalesce(won.record_id, c.id)`;

/** Writes the consumers that exist already, or have old allocations. */
const rewrittenConsumers = sql`
    replaced as (
      delete from allocations a using won where a.consumer_id = won.uuid and (won.generation is not null or won.has_old)
    ),
    updated as (
      update consumers c set generation = ${raised(sql`c.generation`)}, project_id = won.project_id, user_id = won.user_id,
        consumer_type_id = coalesce(won.type_id, c.consumer_type_id), updated_at = ${utcNow},
        etag = case when coalesce(won.type_id, c.consumer_type_id) is not distinct from won.type_id then won.etag end
      from won where ${isWon} and not won.emptied
      returning c.id, c.uuid, c.generation
    ),`;

/** Removes the consumers that have nothing after the claims. */
const removedConsumers = sql`
    removed as (
      delete from consumers c using won where ${isWon} and won.emptied returning c.id
    ),`;

/**
 * Ends the statement with an error if it did not write each row whose generation it has compared. An UPDATE finds its rows in the snapshot
 * of the statement, which may be older than the locks: it misses a row whose generation is right now, but is another one in the snapshot.
 */
const orLostRace = (parts: { readonly known: boolean; readonly removed: boolean }): RawBuilder<unknown> => sql`
      case when (select count(*) from bumped) = (select count(*) from to_bump)${parts.known ? areConsumersWritten(parts) : sql``}
      then true else lost_race() end`;

const areConsumersWritten = ({ removed }: { readonly removed: boolean }) => sql`
        and (select count(*) from updated)${removed ? sql` + (select count(*) from removed)` : sql``}
          = (select count(*) from won where generation is not null)`;
