import * as v from 'valibot';
import { capacity, type InventoryFields, inventoryDefaults, maxInteger, maxRatio } from '../placement/inventory.ts';
import type { ApiError } from '../rest/errors.ts';
import { integer, keyed, number, object } from '../rest/json_schema.ts';
import { since } from '../rest/microversions.ts';
import { echoedTag } from './entity_tags.ts';

/** The names that resource classes may have. */
export const classNamePattern = /^[A-Z0-9_]+$/;

const positive = integer({ minimum: 1, maximum: maxInteger });

/** The fields of an inventory in a request. */
export const inventoryEntries = {
  total: positive,
  reserved: v.optional(integer({ minimum: 0, maximum: maxInteger })),
  min_unit: v.optional(positive),
  max_unit: v.optional(positive),
  step_size: v.optional(positive),
  allocation_ratio: v.optional(number({ maximum: maxRatio })),
};

/** One of several inventories in a request. As in upstream it may have a generation, which is ignored. */
export const inventoryRecordEntries = { ...inventoryEntries, resource_provider_generation: v.optional(integer()) };
const providerInventoryEntries = {
  resource_provider_generation: integer(),
  inventories: keyed(classNamePattern, object(inventoryRecordEntries)),
};

/** The body that replaces all inventories of a provider, by version, newest first. */
export const providerInventoriesBodies = [
  {
    since: since.entityTags,
    schema: object({
      ...providerInventoryEntries,
      inventories: keyed(classNamePattern, object({ ...inventoryRecordEntries, ...echoedTag })),
      ...echoedTag,
    }),
  },
  { since: since.firstVersion, schema: object(providerInventoryEntries) },
] as const;

/** An inventory of a request, completed with the defaults. */
export function inventoryFields(body: {
  readonly total: number;
  readonly reserved?: number | undefined;
  readonly min_unit?: number | undefined;
  readonly max_unit?: number | undefined;
  readonly step_size?: number | undefined;
  readonly allocation_ratio?: number | undefined;
}): InventoryFields {
  return {
    total: body.total,
    reserved: body.reserved ?? inventoryDefaults.reserved,
    minUnit: body.min_unit ?? inventoryDefaults.minUnit,
    maxUnit: body.max_unit ?? inventoryDefaults.maxUnit,
    stepSize: body.step_size ?? inventoryDefaults.stepSize,
    allocationRatio: body.allocation_ratio ?? inventoryDefaults.allocationRatio,
  };
}

/** @throws the error that `refused` makes, where the capacity of an inventory is too low. */
export function checkCapacity(
  inventories: readonly (readonly [className: string, fields: InventoryFields])[],
  providerUuid: string,
  version: number,
  refused: (reason: string) => ApiError,
): void {
  const mayBeTotal = version >= since.fullyReserved;
  for (const [name, fields] of inventories) {
    const amount = capacity(fields);
    if (mayBeTotal ? amount >= 0 : amount > 0) continue;
    throw refused(
      `Invalid inventory for '${name}' on resource provider '${providerUuid}'. ` +
        `The reserved value is greater than ${mayBeTotal ? '' : 'or equal to '}total.`,
    );
  }
}
