import type { ProviderWrite } from '../../db/statements/providers/provider_write.ts';
import { inventoriesTagOf } from '../fleet/model/entity_tags.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import { nameOf } from '../fleet/model/names.ts';
import type { FieldsOfClass, Inventory, Provider } from '../fleet/model/provider.ts';
import { inventoriesTag, inventoryTag } from '../placement/entity_tag.ts';

type NewInventory = FieldsOfClass & { readonly className: string };

/**
 * The write that puts some inventories of a provider and removes others. The names of the classes are a guard of it: the request names
 * them, and the entity tags are made of them.
 */
export function inventoriesWrite(
  fleet: Fleet,
  provider: Provider,
  put: readonly NewInventory[],
  remove: readonly Inventory[],
): ProviderWrite {
  const { classes } = fleet;
  const removed = remove.map(({ fields }) => fields.classId);
  const changed = new Set([...put.map(({ classId }) => classId), ...removed]);
  const kept = provider.inventories.map(({ fields }) => fields).filter(({ classId }) => !changed.has(classId));
  return {
    kind: 'inventories',
    providerId: provider.id,
    uuid: provider.uuid,
    generation: provider.generation,
    put: put.map((inventory) => ({ ...inventory, tag: inventoryTag(inventory) })),
    remove: removed,
    present: provider.inventories.flatMap(({ fields }) => classes.byId.get(fields.classId) ?? []),
    tag: inventoriesTag([
      ...put.map((inventory) => [inventory.className, inventory] as const),
      ...kept.map((fields) => [nameOf(classes, fields.classId), fields] as const),
    ]),
    tagBefore: inventoriesTagOf(fleet, provider),
  };
}
