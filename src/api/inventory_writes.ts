import type { ProviderWrite } from '../../db/statements/providers/provider_write.ts';
import { writeInventories } from '../../db/statements/providers/write_inventories.ts';
import { inventoriesTagOf } from '../fleet/entity_tags.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { nameOf } from '../fleet/names.ts';
import type { Inventory, Provider } from '../fleet/provider.ts';
import { inventoriesTag, inventoryTag } from '../placement/entity_tag.ts';
import type { InventoryFields } from '../placement/inventory.ts';

type NewInventory = InventoryFields & { readonly classId: number; readonly className: string };

/**
 * The write that puts some inventories of a provider and removes others. The names of the classes are a guard of it,
 * since the entity tag is made of them.
 */
export function inventoriesWrite(
  fleet: Fleet,
  provider: Provider,
  put: readonly NewInventory[],
  remove: readonly Inventory[],
): ProviderWrite {
  const { classes, serverRun } = fleet;
  const changed = new Set([...put, ...remove].map(({ classId }) => classId));
  const kept = provider.inventories.filter(({ classId }) => !changed.has(classId));
  return writeInventories({
    providerId: provider.id,
    generation: provider.generation,
    serverRun,
    put: put.map((inventory) => ({ ...inventory, tag: inventoryTag(inventory) })),
    remove: remove.map(({ classId }) => classId),
    kept: kept.flatMap(({ classId }) => classes.byId.get(classId) ?? []),
    tag: inventoriesTag([
      ...put.map((inventory) => [inventory.className, inventory] as const),
      ...kept.map(({ classId, fields }) => [nameOf(classes, classId), fields] as const),
    ]),
    tagBefore: inventoriesTagOf(fleet, provider),
  });
}
