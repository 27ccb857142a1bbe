import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { formerGenerations } from '../consumers/former_generations.ts';
import type { NamedAllocation } from './seen_allocations.ts';

/** An allocation of a consumer, with the data of its provider and consumer. */
export type ConsumerAllocationRow = NamedAllocation & {
  readonly consumer_uuid: string;
  readonly provider_generation: number;
  /** Milliseconds since 1970. */
  readonly modified: number | null;
  /** This and the following fields are null for old allocations, which have no consumer record. */
  readonly consumer_generation: number | null;
  readonly consumer_type: string | null;
  readonly project_id: string | null;
  readonly user_id: string | null;
  /** How many generations the former consumers with this UUID had; 0 if that was not asked for. */
  readonly former_generations: number;
  /** When its term ends; null if it lasts. */
  readonly expires: Date | null;
};

/**
 * All allocations of some consumers, in the order in which they were written.
 *
 * @param withFormer whether to read the generations of former consumers as well
 */
export async function readAllocations(
  { kysely }: Database,
  consumerUuids: readonly string[],
  withFormer = false,
): Promise<readonly ConsumerAllocationRow[]> {
  const { rows } = await sql<ConsumerAllocationRow>`
    select a.id, a.consumer_id as consumer_uuid, a.resource_provider_id as "providerId", a.resource_class_id as "classId",
      rp.uuid as provider_uuid, coalesce(rp.generation, 0) as provider_generation, rc.name as class_name, a.used,
      (extract(epoch from coalesce(a.updated_at, a.created_at)) * 1000)::float8 as modified,
      c.generation as consumer_generation, ${withFormer ? formerGenerations(sql`a.consumer_id`) : sql`0`} as former_generations, ct.name as consumer_type, p.external_id as project_id, u.external_id as user_id,
      (select expires_at from consumer_terms where consumer_id = c.id and generation = c.generation) as expires
    from allocations a
    join resource_providers rp on rp.id = a.resource_provider_id
    join resource_classes rc on rc.id = a.resource_class_id
    left join consumers c on c.uuid = a.consumer_id
    left join consumer_types ct on ct.id = c.consumer_type_id
    left join projects p on p.id = c.project_id
    left join users u on u.id = c.user_id
    where a.consumer_id = any(${consumerUuids}::text[]) order by a.id`.execute(kysely);
  return rows;
}
