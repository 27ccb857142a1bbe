import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import type { Database } from '../../db/engine/connect.ts';

/** Class ids of the standard names. */
const vcpu = 0;

/**
 * A provider as microversions below 1.14 left it, with 1,000,000 VCPU, without a root, and with or without a parent.
 */
export async function insertOldProvider(
  { kysely }: Database,
  name: string,
  parentId: number | null = null,
): Promise<{ readonly id: number; readonly uuid: string }> {
  const uuid = randomUUID();
  const { rows } = await sql<{ id: number }>`
    insert into resource_providers (uuid, name, generation, parent_provider_id, created_at)
    values (${uuid}, ${name}, 0, ${parentId}, now() at time zone 'utc') returning id`.execute(kysely);
  const id = rows[0]?.id ?? 0;
  await sql`insert into inventories
    (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
    values (${id}, ${vcpu}, 1000000, 0, 1, 1000000, 1, 1.0)`.execute(kysely);
  return { id, uuid };
}

/** Allocations of 1 VCPU as microversions below 1.8 left them: without a consumer record. */
export async function insertOldAllocations(
  { kysely }: Database,
  providerId: number,
  consumers: readonly string[],
): Promise<void> {
  await sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used, created_at)
    select ${providerId}, ${vcpu}, consumer, 1, now() at time zone 'utc'
    from unnest(${consumers}::text[]) as consumer`.execute(kysely);
}

export const newUuids = (count: number): readonly string[] => Array.from({ length: count }, () => randomUUID());

/** Rows that must never exist: allocations without a consumer, and consumers without allocations. */
export async function countStrays({ kysely }: Database): Promise<{ allocations: number; consumers: number }> {
  const { rows } = await sql<{ allocations: number; consumers: number }>`select
    (select count(*)::integer from allocations a
      where not exists (select from consumers c where c.uuid = a.consumer_id)) as allocations,
    (select count(*)::integer from consumers c
      where not exists (select from allocations a where a.consumer_id = c.uuid)) as consumers`.execute(kysely);
  return rows[0] ?? { allocations: -1, consumers: -1 };
}
