import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { utcNow } from '../utc_now.ts';

/** An inventory as the table keeps it. */
export type InventoryValues = {
  readonly classId: number;
  readonly total: number;
  readonly reserved: number;
  readonly minUnit: number;
  readonly maxUnit: number;
  readonly stepSize: number;
  readonly allocationRatio: number;
};

/**
 * Adds or replaces some inventories of a provider and removes others, guarded by the provider's generation, which grows by
 * one. Whether those to remove are in use was judged under that generation: usage only grows together with it. The classes
 * are locked against being deleted meanwhile.
 *
 * @returns whether the generation still was the expected one and all classes exist; nothing was changed otherwise.
 */
export async function writeInventories(
  { kysely }: Database,
  write: {
    readonly providerId: number;
    readonly generation: number;
    readonly put: readonly InventoryValues[];
    readonly remove: readonly number[];
  },
): Promise<boolean> {
  const column = (name: keyof InventoryValues) => write.put.map((inventory) => inventory[name]);
  const { rows } = await sql<{ id: number }>`
    with classes as (
      select id from resource_classes where id = any(${column('classId')}::integer[]) for key share
    ), guard as (
      update resource_providers set generation = coalesce(generation, 0) + 1, updated_at = ${utcNow}
      where id = ${write.providerId} and coalesce(generation, 0) = ${write.generation}
        and (select count(*) from classes) = ${write.put.length}
      returning id
    ), removed as (
      delete from inventories i using guard
      where i.resource_provider_id = guard.id and i.resource_class_id = any(${write.remove}::integer[])
    ), put as (
      insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
        allocation_ratio, created_at)
      select guard.id, values.*, ${utcNow} from guard, unnest(${column('classId')}::integer[], ${column('total')}::integer[],
        ${column('reserved')}::integer[], ${column('minUnit')}::integer[], ${column('maxUnit')}::integer[],
        ${column('stepSize')}::integer[], ${column('allocationRatio')}::float8[]) as values
      on conflict (resource_provider_id, resource_class_id) do update set total = excluded.total,
        reserved = excluded.reserved, min_unit = excluded.min_unit, max_unit = excluded.max_unit,
        step_size = excluded.step_size, allocation_ratio = excluded.allocation_ratio, updated_at = ${utcNow}
    )
    select id from guard`.execute(kysely);
  return rows.length === 1;
}
