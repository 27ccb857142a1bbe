import * as v from 'valibot';
import { laterGeneration } from '../../../db/statements/generations.ts';
import { inventoriesTagOf, inventoryTagOf } from '../../fleet/model/entity_tags.ts';
import type { Fleet } from '../../fleet/model/fleet.ts';
import { nameOf } from '../../fleet/model/names.ts';
import { byClass, type FieldsOfClass, type Inventory, inventoryOf, type Provider } from '../../fleet/model/provider.ts';
import {
  capacity,
  classNamePattern,
  type InventoryFields,
  inventoryDefaults,
  maxInteger,
  maxRatio,
} from '../../placement/inventory.ts';
import { since } from '../../placement/microversions.ts';
import { ApiError } from '../../request/errors.ts';
import type { Answer, ApiRequest } from '../../rest/endpoint.ts';
import { integer, keyed, number, object } from '../../rest/json_schema.ts';
import { floatJson, numbersAsWritten } from '../../rest/python_numbers.ts';
import { echoedTag, newest, tagged } from '../answers.ts';

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

/**
 * Refuses inventories whose capacity is too low.
 *
 * @param action what the request does, for the error
 * @throws ApiError 400
 */
export function checkCapacity(
  inventories: readonly (readonly [className: string, fields: InventoryFields])[],
  providerUuid: string,
  version: number,
  action: 'create' | 'update',
): void {
  const mayBeTotal = version >= since.fullyReserved;
  for (const [name, fields] of inventories) {
    const amount = capacity(fields);
    if (mayBeTotal ? amount >= 0 : amount > 0) continue;
    const which =
      `Unable to ${action} inventory for resource provider ${providerUuid}: ` +
      `Invalid inventory for '${name}' on resource provider '${providerUuid}'. `;
    const { total, reserved, allocationRatio } = fields;
    const upstreams = `${which}The reserved value is greater than ${mayBeTotal ? '' : 'or equal to '}total.`;
    const sentence =
      reserved > total
        ? `${which}The reserved value is greater than total: ${reserved} of ${total} would be reserved.`
        : `${which}The allocation_ratio ${allocationRatio} is below 0.`;
    throw new ApiError(400, upstreams, { sentence });
  }
}

/** The numbers of an inventory as a request wrote them, for JSON.stringify. */
type WrittenNumbers = { readonly [field in Field]?: unknown };

const fields = ['total', 'reserved', 'min_unit', 'max_unit', 'step_size', 'allocation_ratio'] as const;
type Field = (typeof fields)[number];

/** An integer as the ratio, or another field that is written as a floating-point number. */
const unusual =
  /"allocation_ratio"\s*:\s*-?\d+\s*[,}]|"(?:total|reserved|min_unit|max_unit|step_size)"\s*:\s*-?\d+[.eE]|\\/;

/**
 * The numbers of a body with inventories, where it writes some in another way than GET shows them. The answer to such a request has
 * them as they were sent: `"allocation_ratio": 16` and not 16.0.
 *
 * @param text the body, which is valid
 * @param name of the resource class, in a body with several inventories
 */
export function writtenNumbers(text: string): (name?: string) => WrittenNumbers | undefined {
  // Programs of OpenStack write ratios with a point, and integers without one.
  if (!unusual.test(text)) return () => undefined;
  const body = Object(numbersAsWritten(text));
  return (name) => {
    const inventory = Object(name === undefined ? body : Object(body.inventories)[name]);
    return Object.fromEntries(
      fields.flatMap((field) => (Object.hasOwn(inventory, field) ? [[field, inventory[field]]] : [])),
    );
  };
}

/**
 * The fields of one inventory in an answer.
 *
 * @param numbers of a request, in its spelling
 */
export const inventoryShape = (fields: InventoryFields, numbers: WrittenNumbers = {}) => ({
  total: numbers.total ?? fields.total,
  reserved: numbers.reserved ?? fields.reserved,
  min_unit: numbers.min_unit ?? fields.minUnit,
  max_unit: numbers.max_unit ?? fields.maxUnit,
  step_size: numbers.step_size ?? fields.stepSize,
  allocation_ratio: numbers.allocation_ratio ?? floatJson(fields.allocationRatio),
});

/** An inventory that a request writes. */
type PutInventory = FieldsOfClass & { readonly numbers?: WrittenNumbers | undefined };

/** Inventories of a provider in an answer, in the order of their classes. */
type Shown = Pick<Provider, 'generation'> & { readonly inventories: readonly ShownInventory[] };
type ShownInventory = Pick<Inventory, 'fields' | 'modifiedAtSeconds'> & { readonly numbers?: WrittenNumbers };

/**
 * What a write left behind. Later writes are not in it: with their generation, a client that has not read them would
 * overwrite them.
 *
 * @param shown has the write, and maybe later ones
 * @param generation the one that guarded the write
 */
export function asWritten(shown: Fleet, uuid: string, generation: number, put: readonly PutInventory[]): Shown {
  const provider = shown.byUuid.get(uuid);
  const inventories = put.map(({ numbers, ...fields }) => {
    const present = provider && inventoryOf(provider, fields.classId);
    const modifiedAtSeconds = present?.modifiedAtSeconds ?? Math.floor(Date.now() / 1000);
    return { fields, modifiedAtSeconds, ...(numbers === undefined ? {} : { numbers }) };
  });
  return { generation: laterGeneration(generation, 1), inventories: inventories.sort(byClass) };
}

/** The answer with one inventory of a provider. */
export const oneAnswer = (
  request: ApiRequest,
  status: number,
  provider: Pick<Provider, 'generation'>,
  inventory: ShownInventory,
): Answer => ({
  status,
  ...tagged(
    request,
    {
      ...inventoryShape(inventory.fields, inventory.numbers),
      // Upstream leaves a generation of 0 out.
      ...(provider.generation === 0 ? {} : { resource_provider_generation: provider.generation }),
    },
    () => inventoryTagOf(inventory),
  ),
  lastModified: new Date(inventory.modifiedAtSeconds * 1000),
});

/** The answer with all inventories of a provider. */
export const listAnswer = (request: ApiRequest, provider: Shown, fleet: Fleet): Answer => ({
  status: 200,
  ...tagged(
    request,
    {
      resource_provider_generation: provider.generation,
      inventories: Object.fromEntries(
        provider.inventories.map((inventory) => [
          nameOf(fleet.classes, inventory.fields.classId),
          tagged(request, inventoryShape(inventory.fields, inventory.numbers), () => inventoryTagOf(inventory)).json,
        ]),
      ),
    },
    () => inventoriesTagOf(fleet, provider),
  ),
  lastModified:
    provider.inventories.length === 0
      ? null
      : newest(provider.inventories.map(({ modifiedAtSeconds }) => modifiedAtSeconds * 1000)),
});
