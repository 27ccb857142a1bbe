import { type RawBuilder, sql } from 'kysely';
import { utcNow } from '../../engine/time.ts';
import { raised } from '../generation.ts';

/*
 * What the statement that writes claims does to rows that exist already, as parts of it, for the claims that lost no guard.
 */

/** As ARRAY the lost claims are read once for each part. A hashed subquery would cost more for a small batch. */
export const lostClaims = sql`array(select claim from lost)`;

/** Raises the generations of the providers, each for all claims together. */
export const raisedProviders = sql`to_bump as materialized (
      select provider_id, present, sum(bump)::integer as bump from guard where claim <> all(${lostClaims}) group by 1, 2
    ),
    bumped as (
      update resource_providers p set generation = ${raised(sql`p.generation`, sql`g.bump`)}, updated_at = ${utcNow}
      from to_bump g where p.id = g.provider_id and coalesce(p.generation, 0) = g.present
      returning p.id, p.generation
    ),`;

/** Writes and removes the inventories of reshapes. */
export const writtenInventories = sql`
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
export const rewrittenConsumers = sql`
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

/** Removes the consumers that are to have nothing. */
export const removedConsumers = sql`
    removed as (
      delete from consumers c using won where ${isWon} and won.emptied returning c.id
    ),`;

/**
 * Ends the statement if it did not write each row whose number it has compared. An UPDATE finds its rows in the snapshot of the
 * statement, which may be older than the locks: it does not find a row that has the right number now, and another one in the snapshot.
 */
export const orLostRace = (parts: { readonly known: boolean; readonly removed: boolean }): RawBuilder<unknown> => sql`
      case when (select count(*) from bumped) = (select count(*) from to_bump)${parts.known ? areConsumersWritten(parts) : sql``}
      then true else lost_race() end`;

const areConsumersWritten = ({ removed }: { readonly removed: boolean }) => sql`
        and (select count(*) from updated)${removed ? sql` + (select count(*) from removed)` : sql``}
          = (select count(*) from won where generation is not null)`;
