import { type RawBuilder, sql } from 'kysely';
import { utcNow } from '../../engine/time.ts';
import { type PartTags, partsAreWritten, writtenTags } from '../entity_tags.ts';
import { numbered } from '../numbered_rows.ts';
import { type JudgedProvider, raisedGenerations, requestedWrites, writtenGuards } from './judged_provider.ts';

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

/** Inventories of a provider that are added or replaced, and inventories that are removed. */
export type WantedInventories = JudgedProvider &
  PartTags & {
    readonly put: readonly (InventoryValues & { readonly className: string; readonly tag: string })[];
    /** The ids of classes. */
    readonly remove: readonly number[];
    /** The classes of the inventories that the provider has. */
    readonly present: readonly { readonly id: number; readonly name: string }[];
  };

/**
 * Adds or replaces some inventories of providers and removes others. Each provider must still have its generation,
 * which is raised by one. The caller has judged for this generation that the inventories to remove are not in use: a
 * write that raises a usage also raises the generation. The classes are locked, so that they cannot be deleted or
 * renamed meanwhile.
 *
 * Nothing is written for a provider that has changed since the judgement, or if there is no class with one of these ids and names.
 */
export function writeInventories(writes: readonly WantedInventories[]): readonly RawBuilder<unknown>[] {
  const classes = numbered(writes, ({ put, present }) => [
    ...put.map(({ classId, className }) => ({ id: classId, name: className })),
    ...present,
  ]);
  const removed = numbered(writes, ({ remove }) => remove);
  const put = numbered(writes, (write) => write.put);
  const settings = partsAreWritten(writes.every((write) => write.put.length > 0 || write.remove.length > 0));
  // A deletion without rows would still run its trigger, so it is left out.
  const removal = sql`removed as (
      delete from inventories i using guard
      join unnest(${removed.index}::integer[], ${removed.column((id) => id)}::integer[]) as gone (index, class_id) using (index)
      where i.resource_provider_id = guard.id and i.resource_class_id = gone.class_id
    ),`;
  const write = sql`
    with ${requestedWrites(writes)}, needed as materialized (
      select * from unnest(${classes.index}::integer[], ${classes.column(({ id }) => id)}::integer[],
        ${classes.column(({ name }) => name)}::text[]) as n (index, id, name)
    ), class as materialized (
      select id, name from resource_classes where (id, name) in (select id, name from needed) for key share
    ), missing as materialized (
      select index from needed where (id, name) not in (select id, name from class)
    ), ${raisedGenerations(writes)}, ${removed.index.length > 0 ? removal : sql``} put as (
      insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
        allocation_ratio, etag, created_at)
      select guard.id, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, etag, ${utcNow}
      from ${settings}, guard join unnest(${put.index}::integer[], ${put.column((i) => i.classId)}::integer[],
        ${put.column((i) => i.total)}::integer[], ${put.column((i) => i.reserved)}::integer[],
        ${put.column((i) => i.minUnit)}::integer[], ${put.column((i) => i.maxUnit)}::integer[],
        ${put.column((i) => i.stepSize)}::integer[], ${put.column((i) => i.allocationRatio)}::float8[],
        ${put.column((i) => i.tag)}::text[]
      ) as i (index, class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio, etag) using (index)
      on conflict (resource_provider_id, resource_class_id) do update set total = excluded.total,
        reserved = excluded.reserved, min_unit = excluded.min_unit, max_unit = excluded.max_unit,
        step_size = excluded.step_size, allocation_ratio = excluded.allocation_ratio, etag = excluded.etag,
        updated_at = ${utcNow}
    ), ${writtenTags('inventories')}
    ${writtenGuards(settings)}`;
  return [write];
}
