import { instead, isTooOld } from '../client/errors.ts';
import type { Inventory, Placement, Provider, Resources } from '../client/index.ts';
import { capacityOf } from '../client/inventories.ts';
import { fields, type Printed, type TextTable } from './table.ts';

/** Everything about a provider. */
export type ProviderPicture = Provider & {
  readonly inventories: { readonly [resourceClass: string]: Inventory };
  readonly usages: Resources;
  readonly traits: readonly string[];
  readonly aggregates: readonly string[];
};

/** Reads all parts of a provider at once. An old server may not have all parts. */
export async function readPicture(placement: Placement, provider: Provider): Promise<ProviderPicture> {
  const { uuid } = provider;
  const [inventories, usages, traits, aggregates] = await Promise.all([
    placement.inventories.list(uuid),
    placement.usages.ofProvider(uuid),
    placement.providerTraits.show(uuid).catch(instead({ traits: [] }, isTooOld)),
    placement.aggregates.show(uuid).catch(instead({ aggregates: [] }, isTooOld)),
  ]);
  return {
    ...provider,
    inventories: inventories.inventories,
    usages: usages.usages,
    traits: traits.traits,
    aggregates: aggregates.aggregates,
  };
}

/** @param nameOf the name of a provider, by its UUID */
export function showPicture(picture: ProviderPicture, nameOf: (uuid: string) => string): Printed {
  const called = (uuid: string | null | undefined) => (uuid ? `${nameOf(uuid)} (${uuid})` : '');
  const about = fields([
    ['name', picture.name],
    ['uuid', picture.uuid],
    ['generation', picture.generation],
    ['parent', called(picture.parent_provider_uuid)],
    ['root', called(picture.root_provider_uuid)],
    ...listed('traits', picture.traits),
    ...listed('aggregates', picture.aggregates),
  ]);
  return [about, inventoryTable(picture.inventories, picture.usages)];
}

/** A list with one line for each entry. */
const listed = (name: string, entries: readonly string[]): readonly (readonly [string, string])[] =>
  entries.length === 0 ? [[name, '']] : entries.map((entry, index) => [index === 0 ? name : '', entry]);

/** The columns of `inventoryTable`. */
export const inventoryColumns: readonly string[] = [
  ...['class', 'total', 'reserved', 'min_unit', 'max_unit', 'step_size', 'allocation_ratio'],
  ...['capacity', 'used'],
];

/** A table of inventories and usages, with one line for each class. */
export function inventoryTable(inventories: ProviderPicture['inventories'], usages: Resources): TextTable {
  const rows = Object.entries(inventories).map(([name, inventory]) => [
    name,
    inventory.total,
    inventory.reserved,
    inventory.min_unit,
    inventory.max_unit,
    inventory.step_size,
    inventory.allocation_ratio,
    capacityOf(inventory),
    usages[name] ?? 0,
  ]);
  return { head: inventoryColumns, rows };
}
