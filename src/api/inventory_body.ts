import * as v from 'valibot';
import type { ApiError } from '../errors.ts';
import { capacity, type InventoryFields, inventoryDefaults, maxInteger, maxRatio } from '../placement/inventory.ts';
import { integer, keyed, number, object } from '../schema/json_schema.ts';
import { echoedTag } from './entity_tags.ts';

/** What resource classes may be called. */
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

/** One of several inventories in a request; upstream lets it carry a generation, which means nothing. */
export const inventoryRecordEntries = { ...inventoryEntries, resource_provider_generation: v.optional(integer()) };
const providerInventoryEntries = {
  resource_provider_generation: integer(),
  inventories: keyed(classNamePattern, object(inventoryRecordEntries)),
};

/** All inventories of a provider, to replace those that it has, by the version that brought the form, newest first. */
export const providerInventoriesBodies = [
  {
    since: 40,
    schema: object({
      ...providerInventoryEntries,
      inventories: keyed(classNamePattern, object({ ...inventoryRecordEntries, ...echoedTag })),
      ...echoedTag,
    }),
  },
  { since: 0, schema: object(providerInventoryEntries) },
] as const;

/** An inventory as a request gives it, completed. */
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

/** Microversion 1.26 allows inventories of which everything is reserved. */
const reservedMayBeTotalSince = 26;

/** @throws what `refused` makes of the reason, where an inventory has less capacity than it may. */
export function checkCapacity(
  inventories: readonly (readonly [className: string, fields: InventoryFields])[],
  providerUuid: string,
  version: number,
  refused: (reason: string) => ApiError,
): void {
  const mayBeTotal = version >= reservedMayBeTotalSince;
  for (const [name, fields] of inventories) {
    const amount = capacity(fields);
    if (mayBeTotal ? amount >= 0 : amount > 0) continue;
    throw refused(
      `Invalid inventory for '${name}' on resource provider '${providerUuid}'. ` +
        `The reserved value is greater than ${mayBeTotal ? '' : 'or equal to '}total.`,
    );
  }
}
