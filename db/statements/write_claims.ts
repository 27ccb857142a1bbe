import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { serverRun } from '../server_run.ts';
import { utcNow } from '../utc_now.ts';
import { waitBriefly } from './brief_wait.ts';
import {
  lockedAllocations,
  lockedClasses,
  lockedConsumers,
  lostClasses,
  lostEmptied,
  lostGenerations,
  lostNames,
  lostSight,
} from './claim_guards.ts';
import {
  type ClaimWrite,
  type ConsumerWrite,
  claimedConsumers,
  newAllocations,
  providerGuards,
  providerIds,
} from './claim_write.ts';
import { type Leeway, lockProviders, overtakenProviders } from './others_claims.ts';
import { consumerTagsAreWritten } from './written_tags.ts';

/** Which guard a claim lost; undefined where it was written. `owner`: a project, user or consumer type does not exist yet. */
export type LostGuard = 'provider' | 'consumer' | 'class' | 'owner' | undefined;

/** What became of the claims of a batch. */
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
  const consumers = claims.flatMap((claim) => claim.consumers);
  const emptied = consumers.filter(isEmptiedOldOne).map(({ uuid }) => uuid);
  // Even on no rows a part costs its start and its triggers; most batches have none of these.
  const parts = {
    inventories: claims.some(({ inventories }) => inventories.length > 0),
    customClasses: claims.some((claim) => (claim.customClasses ?? []).length > 0),
    known: consumers.some(({ generation, hasOldAllocations }) => generation !== null || hasOldAllocations),
    recorded: consumers.some(({ generation, seen }) => generation !== null || seen !== undefined),
    emptied: emptied.length > 0,
  };
  const statement = sql<WrittenRow>`
    with consumer as materialized (${claimedConsumers(claims)}),
    allocation as (${newAllocations(claims)}),
    locked_provider as materialized (
      select id, coalesce(generation, 0) as generation from resource_providers where id = any(${providerIds(claims)}::integer[])
        ${claims.length > 1 ? sql`and (${waitBriefly}) is not null` : sql``}
      order by id for no key update
    ),
    guard as materialized (
      select g.*, p.generation as present from (${providerGuards(claims)}) as g left join locked_provider p on p.id = g.provider_id
    ),
    ${parts.recorded ? lockedConsumers : sql``}
    ${parts.inventories ? lockedClasses(claims) : sql``}
    ${lockedAllocations(claims, parts.inventories)}
    ${leeway === undefined ? sql`` : overtakenProviders(leeway)}
    lost as materialized (
      select claim, 'provider' as what from guard
      where present is null or ${serverRun} <> ${judgedOn}::text
        or present <> generation ${leeway === undefined ? sql`` : sql`and provider_id in (select provider_id from overtaken)`}
      ${parts.recorded ? lostGenerations : sql``}
      union all
      select claim, 'consumer' from consumer where generation is null and not has_old
        and exists (select from allocations where consumer_id = consumer.uuid)
      ${parts.emptied ? lostEmptied : sql``}
      union all
      select claim, 'owner' from consumer where not emptied
        and (project_id is null or user_id is null or (type_name is not null and type_id is null))
      ${parts.customClasses ? lostNames(claims) : sql``}
      ${parts.inventories ? lostClasses : sql``}
      ${lostSight(claims)}
    ),
    won as (select * from consumer where claim <> all(${lostOnes})),
    bumped as (
      update resource_providers p set generation = coalesce(p.generation, 0) + g.bump, updated_at = ${utcNow}
      from (
        select provider_id, sum(bump)::integer as bump from guard where claim <> all(${lostOnes}) group by 1
      ) as g where p.id = g.provider_id
    ),
    ${parts.inventories ? writtenInventories : sql``}
    ${parts.known ? rewrittenConsumers : sql``}
    created as (
      insert into consumers (uuid, project_id, user_id, consumer_type_id, generation, created_at, etag)
      select uuid, project_id, user_id, type_id, 1, ${utcNow}, etag from won where generation is null and not emptied
      order by uuid collate "C" -- so that two statements that make the same ones do not wait for each other in a circle
    ),
    inserted as (
      insert into allocations (resource_provider_id, resource_class_id, consumer_id, used, created_at)
      select provider_id, class_id, consumer_uuid, used, ${utcNow}
      from allocation where claim <> all(${lostOnes})
    )
    select pg_current_xact_id()::text as xid, lost.claim, lost.what,
      exists (select from guard where present <> generation) as "isContested"
    from (${consumerTagsAreWritten}) as tags left join lost on true`;
  const before = leeway === undefined ? [] : [lockProviders(claims)];
  const after = parts.emptied ? removeLateConsumers(emptied) : [];
  const results = await transaction([...before, statement, ...after]);
  const rows = (results[before.length] ?? []) as readonly WrittenRow[]; // the rows of `statement`
  const lost: LostGuard[] = claims.map(() => undefined);
  for (const { claim, what } of rows) if (claim !== null) lost[claim] = what;
  return { lost, xid: rows[0]?.xid ?? '0', isContested: rows[0]?.isContested ?? false };
}

/** Behind ARRAY they are read once for each part, and not hashed, which costs a small batch more. */
const lostOnes = sql`array(select claim from lost)`;

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
