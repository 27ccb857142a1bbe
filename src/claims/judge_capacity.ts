import type { Fleet } from '../fleet/fleet.ts';
import { nameOf } from '../fleet/names.ts';
import { type Inventory, inventoryOf, type Provider } from '../fleet/provider.ts';
import { exactCapacity, fitsUnits, type InventoryFields } from '../placement/inventory.ts';
import { ClaimRefused, type InventoryFault } from './claim.ts';
import type { NewInventories } from './judge_inventories.ts';

/** An allocation by ids, as the database keeps it. */
export type AllocationIds = { readonly providerId: number; readonly classId: number; readonly used: number };

/** What a claim changes of the usage of one class on one provider. */
export type Demand = {
  readonly provider: Provider;
  readonly classId: number;
  /** The inventory in the fleet, absent where the claim itself brings it. */
  readonly inventory: Inventory | undefined;
  /** What the claim's consumers had of it before. */
  readonly freed: number;
  /** What they have of it afterwards. */
  wanted: number;
};

/**
 * Checks each wanted allocation against the units and the capacity of its inventory. The present allocations of the
 * claim's consumers are subtracted first. Usage beyond the capacity is allowed if it is not more than before (upstream,
 * since March 2025).
 *
 * @param freed what the consumers have now
 * @param newInventories inventories that the same claim brings (the reshaper)
 * @param promised what other claims of the batch add
 * @throws ClaimRefused
 */
export function judgeCapacity(
  fleet: Fleet,
  wanted: readonly AllocationIds[],
  freed: readonly AllocationIds[],
  newInventories: NewInventories,
  promised: ReadonlyMap<Inventory, number>,
): readonly Demand[] {
  const demands = new Map<string, Demand>();
  for (const { providerId, classId } of [...freed, ...wanted]) {
    const key = `${providerId}:${classId}`;
    const provider = fleet.byId.get(providerId);
    if (demands.has(key) || provider === undefined) continue;
    demands.set(key, {
      provider,
      classId,
      inventory: inventoryOf(provider, classId),
      freed: sum(freed, providerId, classId),
      wanted: 0,
    });
  }
  const fieldsOf = (provider: Provider, classId: number): InventoryFields | undefined =>
    newInventories.get(provider.id)?.inventories.get(classId) ?? inventoryOf(provider, classId)?.fields;
  checkSomeInventory(fleet, wanted, fieldsOf);

  for (const { providerId, classId, used: amount } of wanted) {
    const demand = demands.get(`${providerId}:${classId}`);
    if (demand === undefined) continue; // never: each wanted allocation has its demand
    const name = nameOf(fleet.classes, classId);
    const { uuid } = demand.provider;
    const fields = fieldsOf(demand.provider, classId);
    if (fields === undefined) throw invalidInventory(name, uuid);
    const refuse = (what: string, fault: InventoryFault) =>
      new ClaimRefused(
        'invalid inventory',
        `Unable to create allocation for '${name}' on resource provider '${uuid}'. The requested amount would ${what}.`,
        fault,
      );
    if (!fitsUnits(fields, amount)) throw refuse('violate inventory constraints', 'constraints');
    demand.wanted += amount;
    const before = demand.inventory === undefined ? 0 : demand.inventory.used + (promised.get(demand.inventory) ?? 0);
    const after = before - demand.freed + demand.wanted;
    if (after > exactCapacity(fields) && !(before > 0 && after <= before))
      throw refuse('exceed the capacity', 'capacity');
  }
  return [...demands.values()];
}

const sum = (allocations: readonly AllocationIds[], providerId: number, classId: number): number =>
  allocations.reduce(
    (total, each) => (each.providerId === providerId && each.classId === classId ? total + each.used : total),
    0,
  );

const invalidInventory = (classNames: string, providerUuids: string) =>
  new ClaimRefused(
    'invalid inventory',
    `Inventory for '${classNames}' on resource provider '${providerUuids}' invalid.`,
    'absent',
  );

/** Providers that have none of the claim's classes are refused first, all in one message, as upstream does. */
function checkSomeInventory(
  fleet: Fleet,
  wanted: readonly AllocationIds[],
  fieldsOf: (provider: Provider, classId: number) => InventoryFields | undefined,
): void {
  const classIds = [...new Set(wanted.map(({ classId }) => classId))];
  const providers = [...new Set(wanted.map(({ providerId }) => providerId))].flatMap((id) => fleet.byId.get(id) ?? []);
  const without = providers.filter((provider) => !classIds.some((classId) => fieldsOf(provider, classId)));
  if (without.length === 0) return;
  throw invalidInventory(
    classIds.map((id) => nameOf(fleet.classes, id)).join(', '),
    without.map(({ uuid }) => uuid).join(', '),
  );
}
