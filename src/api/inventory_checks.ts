import { inventoriesTagOf, inventoryTagOf } from '../fleet/entity_tags.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { nameOf } from '../fleet/names.ts';
import { type Inventory, inventoryOf, type Provider } from '../fleet/provider.ts';
import type { ApiRequest } from '../rest/endpoint.ts';
import { concurrentlyUpdated, conflict, errorCodes, inventoryInUse } from '../rest/errors.ts';
import { requireMatch } from './entity_tags.ts';

/** The 409 for a write of inventories that lost a race. */
export const updateConflict = () => conflict(`update conflict: ${concurrentlyUpdated}`, errorCodes.concurrentUpdate);

/** @throws ApiError 409 where the provider is not at this generation. */
export function checkGeneration(provider: Provider, generation: number): void {
  if (provider.generation !== generation) {
    throw conflict('resource provider generation conflict', errorCodes.concurrentUpdate);
  }
}

/** @throws ApiError 412 where all inventories together are not what If-Match says. */
export const requireInventories = (request: ApiRequest, provider: Provider, fleet: Fleet): void =>
  requireMatch(request, `What resource provider ${provider.uuid} has`, () => inventoriesTagOf(fleet, provider));

/** @throws ApiError 412 where the inventory that the request names is not what If-Match says. */
export function requireInventory(request: ApiRequest, provider: Provider, fleet: Fleet): void {
  const name = request.param('resource_class');
  const inventory = inventoryOf(provider, fleet.classes.byName.get(name)?.id ?? -1);
  requireMatch(
    request,
    `What resource provider ${provider.uuid} has of ${name}`,
    () => inventory && inventoryTagOf(inventory),
  );
}

/** The error text that names the inventories with allocations; undefined where none has any. */
export function inUseAmong(inventories: readonly Inventory[], provider: Provider, fleet: Fleet): string | undefined {
  const used = inventories.filter((inventory) => inventory.used > 0);
  if (used.length === 0) return undefined;
  const names = used.map((inventory) => nameOf(fleet.classes, inventory.fields.classId));
  return inventoryInUse(names, provider.uuid);
}
