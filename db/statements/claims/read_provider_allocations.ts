import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { formerGenerations } from '../consumers/former_generations.ts';

/** An allocation on a provider, with its consumer. */
export type ProviderAllocationRow = {
  readonly provider_uuid: string;
  readonly provider_generation: number;
  /** These are null in the one row of a provider that has no allocations. */
  readonly consumer_uuid: string | null;
  readonly class_name: string | null;
  readonly used: number | null;
  /** Milliseconds since 1970. */
  readonly modified: number | null;
  /** Null also for old allocations, which have no consumer record. */
  readonly consumer_generation: number | null;
  /** How many generations the former consumers with this UUID had; 0 if that was not asked for. */
  readonly former_generations: number;
};

/**
 * All allocations on some providers, in the order in which they were written; no row for a provider that does not
 * exist.
 *
 * @param withFormer whether to read the generations of former consumers as well
 */
export async function readProviderAllocations(
  { kysely }: Database,
  providerUuids: readonly string[],
  withFormer = false,
): Promise<readonly ProviderAllocationRow[]> {
  const { rows } = await sql<ProviderAllocationRow>`
    select rp.uuid as provider_uuid, coalesce(rp.generation, 0) as provider_generation, a.consumer_id as consumer_uuid,
      rc.name as class_name, a.used,
      (extract(epoch from coalesce(a.updated_at, a.created_at)) * 1000)::float8 as modified,
      c.generation as consumer_generation,
      ${withFormer ? formerGenerations(sql`a.consumer_id`) : sql`0`} as former_generations
    from resource_providers rp
    left join allocations a on a.resource_provider_id = rp.id
    left join resource_classes rc on rc.id = a.resource_class_id
    left join consumers c on c.uuid = a.consumer_id
    where rp.uuid = any(${providerUuids}::text[]) order by a.id`.execute(kysely);
  return rows;
}
