import { writeInventories } from '../../db/statements/write_inventories.ts';
import { inventoriesTagOf } from '../fleet/entity_tags.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { nameOf } from '../fleet/names.ts';
import type { Inventory, Provider } from '../fleet/provider.ts';
import { inventoriesTag, inventoryTag } from '../placement/entity_tag.ts';
import type { InventoryFields } from '../placement/inventory.ts';
import type { Parts } from './parts.ts';

type ChangeOfInventories = [
  provider: Provider,
  put: readonly (InventoryFields & { readonly classId: number; readonly className: string })[],
  remove: readonly Inventory[],
];

/** @returns the fleet, which shows it; undefined where the provider was not as it was judged. */
export const changeInventories = (parts: Parts, ...change: ChangeOfInventories): Promise<Fleet | undefined> =>
  parts.providerWrites.perform(inventoriesWrite(parts, ...change));

/** The names of the classes, of which its tag is made, are a guard of the write. */
export function inventoriesWrite({ fleet }: Parts, ...[provider, put, remove]: ChangeOfInventories) {
  const { classes } = fleet.known;
  const changed = new Set([...put, ...remove].map(({ classId }) => classId));
  const kept = provider.inventories.filter(({ classId }) => !changed.has(classId));
  return writeInventories({
    providerId: provider.id,
    generation: provider.generation,
    serverRun: fleet.moment.serverRun,
    put: put.map((inventory) => ({ ...inventory, tag: inventoryTag(inventory) })),
    remove: remove.map(({ classId }) => classId),
    kept: kept.flatMap(({ classId }) => classes.byId.get(classId) ?? []),
    tag: inventoriesTag([
      ...put.map((inventory) => [inventory.className, inventory] as const),
      ...kept.map(({ classId, fields }) => [nameOf(classes, classId), fields] as const),
    ]),
    tagBefore: inventoriesTagOf(fleet.known, provider),
  });
}
