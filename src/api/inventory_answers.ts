import { laterGeneration } from '../../db/statements/generation.ts';
import { inventoriesTagOf, inventoryTagOf } from '../fleet/entity_tags.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { nameOf } from '../fleet/names.ts';
import { byClass, type FieldsOfClass, type Inventory, inventoryOf, type Provider } from '../fleet/provider.ts';
import type { InventoryFields } from '../placement/inventory.ts';
import type { Answer, ApiRequest } from '../rest/endpoint.ts';
import { floatJson } from '../rest/python_numbers.ts';
import { tagged } from './entity_tags.ts';
import { newest } from './last_modified.ts';
import type { WrittenNumbers } from './written_numbers.ts';

/**
 * The fields of one inventory in an answer.
 *
 * @param numbers those of a request, as it wrote them
 */
export const inventoryShape = (fields: InventoryFields, numbers: WrittenNumbers = {}) => ({
  total: numbers.total ?? fields.total,
  reserved: numbers.reserved ?? fields.reserved,
  min_unit: numbers.min_unit ?? fields.minUnit,
  max_unit: numbers.max_unit ?? fields.maxUnit,
  step_size: numbers.step_size ?? fields.stepSize,
  allocation_ratio: numbers.allocation_ratio ?? floatJson(fields.allocationRatio),
});

/** An inventory that a request puts. */
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
