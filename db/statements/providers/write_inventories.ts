import { sql } from 'kysely';
import { utcNow } from '../../engine/utc_now.ts';
import { type PartTags, providerTagsAreWritten, writtenTag } from '../written_tags.ts';
import { type JudgedProvider, nextGeneration, type ProviderWrite } from './provider_write.ts';

/** An inventory as the table stores it. */
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
 * Adds or replaces some inventories of a provider and removes others. The provider must still have its generation,
 * which is raised by one. The caller has judged for this generation that the inventories to remove are not in use: a
 * write that raises a usage also raises the generation. The classes are locked, so that they cannot be deleted or
 * renamed meanwhile.
 *
 * Nothing is written if the generation is another one, or if there is no class with one of these ids and names.
 */
export function writeInventories(
  write: JudgedProvider &
    PartTags & {
      readonly put: readonly (InventoryValues & { readonly className: string; readonly tag: string })[];
      readonly remove: readonly number[];
      /** The classes of the inventories that stay as they are. */
      readonly kept: readonly { readonly id: number; readonly name: string }[];
    },
): ProviderWrite {
  const column = (name: keyof InventoryValues | 'tag') => write.put.map((inventory) => inventory[name]);
  const classes = [...write.put.map(({ classId, className }) => ({ id: classId, name: className })), ...write.kept];
  const classesAreThere = sql`(select count(*) from classes) = ${classes.length}`;
  // A deletion without rows would still run its trigger, so it is left out.
  const removed = sql`removed as (
      delete from inventories i using guard
      where i.resource_provider_id = guard.id and i.resource_class_id = any(${write.remove}::integer[])
    ),`;
  const put = sql`
    with classes as (
      select id from resource_classes
      where (id, name) in (
        select * from unnest(${classes.map(({ id }) => id)}::integer[], ${classes.map(({ name }) => name)}::text[])
      ) for key share
    ), guard as (${nextGeneration(write, classesAreThere)}
    ), ${write.remove.length > 0 ? removed : sql``} put as (
      insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
        allocation_ratio, etag, created_at)
      select guard.id, values.*, ${utcNow}
      from guard, ${providerTagsAreWritten}, unnest(${column('classId')}::integer[], ${column('total')}::integer[],
        ${column('reserved')}::integer[], ${column('minUnit')}::integer[], ${column('maxUnit')}::integer[],
        ${column('stepSize')}::integer[], ${column('allocationRatio')}::float8[], ${column('tag')}::text[]) as values
      on conflict (resource_provider_id, resource_class_id) do update set total = excluded.total,
        reserved = excluded.reserved, min_unit = excluded.min_unit, max_unit = excluded.max_unit,
        step_size = excluded.step_size, allocation_ratio = excluded.allocation_ratio, etag = excluded.etag,
        updated_at = ${utcNow}
    ), ${writtenTag('inventories', write)}
    select id from guard, ${providerTagsAreWritten}`;
  return { lockedId: write.providerId, statements: [put] };
}
