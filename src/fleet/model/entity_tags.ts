import {
  aggregatesTag,
  type EntityTag,
  inventoriesTag,
  inventoryTag,
  providerTag,
  traitsTag,
} from '../../placement/entity_tag.ts';
import type { Fleet } from './fleet.ts';
import { nameOf } from './names.ts';
import type { Inventory, Provider } from './provider.ts';

/*
 * The entity tags of the content of the fleet. They are computed on each call, which takes a microsecond or two;
 * storing them would take half a kilobyte of memory per provider.
 */

/** The tag of a provider itself. */
export const providerTagOf = ({ uuid, name, parent }: Provider): EntityTag =>
  providerTag({ uuid, name, parentUuid: parent?.uuid ?? null });

/** The tag of one inventory. */
export const inventoryTagOf = (inventory: Pick<Inventory, 'fields'>): EntityTag => inventoryTag(inventory.fields);

/** The tag of all inventories of a provider. */
export const inventoriesTagOf = (
  fleet: Fleet,
  { inventories }: { readonly inventories: readonly Pick<Inventory, 'fields'>[] },
): EntityTag => inventoriesTag(inventories.map(({ fields }) => [nameOf(fleet.classes, fields.classId), fields]));

/** The tag of the traits of a provider, by their ids. */
export const traitsTagOf = (fleet: Fleet, traitIds: readonly number[]): EntityTag =>
  traitsTag(traitIds.flatMap((id) => fleet.traits.byId.get(id)?.name ?? []));

/** The tag of the aggregates that a provider is in. */
export const aggregatesTagOf = ({ aggregates }: Provider): EntityTag => aggregatesTag(aggregates);

const ofNothing = { inventories: inventoriesTag([]), traits: traitsTag([]), aggregates: aggregatesTag([]) };

/** The tags of a new provider, whose parts are empty. */
export const newProviderTags = (provider: Parameters<typeof providerTag>[0]) => ({
  provider: providerTag(provider),
  ...ofNothing,
});
