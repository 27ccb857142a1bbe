import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../connect.ts';
import { serverRun } from '../server_run.ts';
import { utcNow } from '../utc_now.ts';
import { waitBriefly } from './brief_wait.ts';
import {
  type ClaimWrite,
  type ConsumerWrite,
  claimedConsumers,
  customClasses,
  inventoriesToRemove,
  newAllocations,
  newInventories,
  providerGuards,
} from './claim_write.ts';
import { type Leeway, lockProviders, overtakenProviders } from './others_claims.ts';
import { seenRows } from './seen_allocations.ts';
import { tagsAreWritten } from './written_tags.ts';

/** Which guard a claim lost; undefined where it was written. `owner`: a project, user or consumer type does not exist yet. */
export type LostGuard = 'provider' | 'consumer' | 'class' | 'owner' | undefined;

export type WrittenClaims = {
  /** For each claim the guard that it lost. */
  readonly lost: readonly LostGuard[];
  /** The transaction in which the others were written. */
  readonly xid: string;
  /** Whether others changed the providers since the claims were judged, with or without harm. */
  readonly isContested: boolean;
};

type WrittenRow = {
  readonly xid: string;
  readonly isContested: boolean;
  readonly claim: number | null;
  readonly what: LostGuard;
};

/**
 * Writes many claims by one statement, each with guards of its own.
 *
 * The statement locks the guarded providers and then the consumers, in the order of their keys, and judges the generations on
 * the newest versions of these rows. Everything else it reads is as old as its snapshot: that is why every change of a
 * consumer's allocations is guarded by the consumer's generation. Where allocations must be those that were seen, their rows are
 * locked as well.
 *
 * @param judgedOn the run of the server of which the generations are (db/server_run.ts): on another all providers are lost, since
 *   the same generations may be of something else where a failover lost transactions; null for whichever
 * @param leeway what others may do to the providers meanwhile; without it, nothing
 * @throws a unique violation where a consumer that should be new exists, and `lockNotAvailable` where somebody holds what one
 *   of several claims needs: then nothing at all was written.
 */
export async function writeClaims(
  { transaction }: Pick<Database, 'transaction'>,
  claims: readonly ClaimWrite[],
  judgedOn: string | null = null,
  leeway?: Leeway,
): Promise<WrittenClaims> {
  // Even on no rows a part costs its triggers; most batches have none of these.
  const parts = {
    inventories: claims.some(({ inventories }) => inventories.length > 0),
    customClasses: claims.some((claim) => (claim.customClasses ?? []).length > 0),
    known: claims.some(({ consumers }) =>
      consumers.some(({ generation, hasOldAllocations }) => generation !== null || hasOldAllocations),
    ),
  };
  const statement = sql<WrittenRow>`
    with consumer as materialized (${claimedConsumers(claims)}),
    guard as materialized (${providerGuards(claims)}),
    allocation as (${newAllocations(claims)}),
    locked_provider as materialized (
      select id, coalesce(generation, 0) as generation from resource_providers where id in (select provider_id from guard)
        ${claims.length > 1 ? sql`and (${waitBriefly}) is not null` : sql``}
      order by id for no key update
    ),
    locked_consumer as materialized (
      select id, uuid, generation from consumers where uuid in (select uuid from consumer where generation is not null)
        and (select count(*) from locked_provider) is not null -- after the providers
      order by uuid for update
    ),
    ${parts.inventories ? lockedClasses(claims) : sql``}
    ${lockedAllocations(claims, parts.inventories)}
    ${leeway === undefined ? sql`` : overtakenProviders(leeway)}
    lost as materialized (
      select guard.claim, 'provider' as what from guard left join locked_provider p on p.id = guard.provider_id
      where p.id is null or ${serverRun} <> ${judgedOn}::text
        or p.generation <> guard.generation ${leeway === undefined ? sql`` : sql`and p.id in (select provider_id from overtaken)`}
      union all
      select c.claim, 'consumer' from consumer c left join locked_consumer l on l.uuid = c.uuid
      where c.generation is not null and (l.generation is distinct from c.generation or l.id <> c.record_id)
      union all
      select c.claim, 'consumer' from consumer c where c.generation is null and not c.has_old
        and exists (select from allocations a where a.consumer_id = c.uuid)
      union all
      select c.claim, 'consumer' from consumer c where c.generation is null and c.emptied
        and exists (select from consumers k where k.uuid = c.uuid)
      union all
      select c.claim, 'owner' from consumer c where not c.emptied
        and (c.project_id is null or c.user_id is null or (c.type_name is not null and c.type_id is null))
      ${parts.customClasses ? lostNames(claims) : sql``}
      ${parts.inventories ? lostClasses : sql``}
      ${lostSight(claims)}
    ),
    won as materialized (select * from consumer where claim not in (select claim from lost)),
    bumped as (
      update resource_providers p set generation = coalesce(p.generation, 0) + g.bump, updated_at = ${utcNow}
      from (
        select provider_id, sum(bump)::integer as bump from guard where claim not in (select claim from lost) group by 1
      ) as g where p.id = g.provider_id
    ),
    ${parts.inventories ? writtenInventories : sql``}
    ${parts.known ? rewrittenConsumers : sql``}
    created as (
      insert into consumers (uuid, project_id, user_id, consumer_type_id, generation, created_at, etag)
      select uuid, project_id, user_id, type_id, 1, ${utcNow}, etag from won where generation is null and not emptied
      order by uuid -- so that two statements that make the same ones do not wait for each other in a circle
    ),
    inserted as (
      insert into allocations (resource_provider_id, resource_class_id, consumer_id, used, created_at)
      select provider_id, class_id, consumer_uuid, used, ${utcNow}
      from allocation where claim not in (select claim from lost)
    )
    select pg_current_xact_id()::text as xid, lost.claim, lost.what, exists (
        select from guard g join locked_provider p on p.id = g.provider_id where p.generation <> g.generation
      ) as "isContested"
    from (${tagsAreWritten}) as tags left join lost on true`;
  const emptied = claims.flatMap(({ consumers }) => consumers.filter(isEmptiedOldOne).map(({ uuid }) => uuid));
  const before = leeway === undefined ? [] : [lockProviders(claims)];
  const after = emptied.length === 0 ? [] : removeLateConsumers(emptied);
  const results = await transaction([...before, statement, ...after]);
  const rows = (results[before.length] ?? []) as readonly WrittenRow[]; // the rows of `statement`
  const lost: LostGuard[] = claims.map(() => undefined);
  for (const { claim, what } of rows) if (claim !== null) lost[claim] = what;
  return { lost, xid: rows[0]?.xid ?? '0', isContested: rows[0]?.isContested ?? false };
}

const isEmptiedOldOne = (consumer: ConsumerWrite): boolean =>
  consumer.generation === null && consumer.hasOldAllocations && consumer.allocations.length === 0;

/**
 * The online data migration may have given old allocations a consumer while the statement waited to delete them: it does not
 * see that one, but the next statements of the transaction do. It is locked first, so that a claim that makes use of it
 * meanwhile is seen.
 */
const removeLateConsumers = (uuids: readonly string[]) => [
  sql`select id from consumers where uuid = any(${uuids}::text[]) order by uuid for update`,
  sql`delete from consumers c where c.uuid = any(${uuids}::text[])
    and not exists (select from allocations a where a.consumer_id = c.uuid)`,
];

/** The consumers of which a claim knows what they must still have. Most batches have none, and a statement without these parts. */
const seenConsumers = (claims: readonly ClaimWrite[]) =>
  claims.flatMap(({ consumers }, claim) =>
    consumers.flatMap(({ uuid, seen }) => (seen === undefined ? [] : [{ claim, uuid, seen }])),
  );

/** Locks their allocations, after everything else, and puts beside them what was seen. */
function lockedAllocations(claims: readonly ClaimWrite[], areClassesLocked: boolean): RawBuilder<unknown> {
  const consumers = seenConsumers(claims);
  if (consumers.length === 0) return sql``;
  const uuids = consumers.flatMap(({ uuid, seen }) => seen.map(() => uuid));
  return sql`
    locked_allocation as materialized (
      select id, consumer_id, resource_provider_id as provider_id, resource_class_id as class_id, used from allocations
      where consumer_id = any(${consumers.map(({ uuid }) => uuid)}::text[])
        and (select count(*) from locked_consumer) is not null
        ${areClassesLocked ? sql`and (select count(*) from locked_class) is not null` : sql``}
      order by id for update
    ),
    seen_allocation as materialized (
      select * from rows from (unnest(${uuids}::text[]), ${seenRows(consumers.flatMap(({ seen }) => seen))}
      ) as s (consumer_id, id, provider_id, class_id, used)
    ),`;
}

/** A part of `lost`: consumers whose allocations are not those that were seen. */
function lostSight(claims: readonly ClaimWrite[]): RawBuilder<unknown> {
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

/** The inventories that are to be, and their classes, which must not vanish meanwhile. */
const lockedClasses = (claims: readonly ClaimWrite[]): RawBuilder<unknown> => sql`
    inventory as (${newInventories(claims)}),
    inventory_to_remove as (${inventoriesToRemove(claims)}),
    locked_class as materialized (
      select id from resource_classes where id in (select class_id from inventory) order by id for key share
    ),`;

/** A part of `lost`: allocations of classes that have another name by now. */
const lostNames = (claims: readonly ClaimWrite[]): RawBuilder<unknown> => sql`
      union all
      select c.claim, 'class' from (${customClasses(claims)}) as c
      where not exists (select from resource_classes r where r.id = c.class_id and r.name = c.name)`;

/** A part of `lost`: inventories of classes that are gone. */
const lostClasses = sql`
      union all
      select i.claim, 'class' from inventory i where i.class_id not in (select id from locked_class)`;

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

/** What becomes of consumers that have something already. */
const rewrittenConsumers = sql`
    replaced as (
      delete from allocations a using won where a.consumer_id = won.uuid and (won.generation is not null or won.has_old)
    ),
    updated as (
      update consumers c set generation = c.generation + 1, project_id = won.project_id, user_id = won.user_id,
        consumer_type_id = coalesce(won.type_id, c.consumer_type_id), updated_at = ${utcNow},
        etag = case when coalesce(won.type_id, c.consumer_type_id) is not distinct from won.type_id then won.etag end
      from won where c.uuid = won.uuid and won.generation is not null and not won.emptied
    ),
    removed as (
      delete from consumers c using won where c.uuid = won.uuid and won.generation is not null and won.emptied
    ),`;
