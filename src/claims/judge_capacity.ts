import type { Fleet } from '../fleet/model/fleet.ts';
import { nameOf } from '../fleet/model/names.ts';
import { type Inventory, inventoryOf, type Provider } from '../fleet/model/provider.ts';
import { capacity, fitsUnits, type InventoryFields, mayBeUsed } from '../placement/inventory.ts';
import { inventoryInUse, noSuchClass, noSuchProvider } from '../request/errors.ts';
import { ClaimRefused, type InventoryClaim, type InventoryFault } from './claim.ts';

/** An allocation by ids, as the database stores it. */
export type AllocationIds = { readonly providerId: number; readonly classId: number; readonly used: number };

/** How a claim changes the usage of one class on one provider. */
export type UsageChange = {
  readonly provider: Provider;
  readonly classId: number;
  /** The inventory in the fleet; undefined if the fleet has none, or if the claim itself creates it (the reshaper). */
  readonly inventory: Inventory | undefined;
  /** The amount that the claim's consumers had before. */
  readonly freed: number;
  /** The amount that they have afterwards. */
  readonly wanted: number;
};

/**
 * Checks each wanted allocation against the units and the capacity of its inventory. The present allocations of the
 * claim's consumers are subtracted first. Usage beyond the capacity is allowed if it is not more than before (upstream,
 * since March 2025).
 *
 * @param freed the allocations that the consumers have now
 * @param newInventories inventories that the same claim writes (the reshaper)
 * @returns one entry for each class of each provider in `freed` or `wanted`
 * @throws ClaimRefused `invalid inventory`
 */
export function judgeCapacity(
  fleet: Fleet,
  wanted: readonly AllocationIds[],
  freed: readonly AllocationIds[],
  newInventories: NewInventories,
): readonly UsageChange[] {
  type Summed = UsageChange & { freed: number; wanted: number };
  const usageChanges = new Map<string, Summed>();
  const changeOf = (providerId: number, classId: number): Summed | undefined => {
    const key = `${providerId}:${classId}`;
    const known = usageChanges.get(key);
    if (known !== undefined) return known;
    const provider = fleet.byId.get(providerId);
    if (provider === undefined) return undefined;
    const change = { provider, classId, inventory: inventoryOf(provider, classId), freed: 0, wanted: 0 };
    usageChanges.set(key, change);
    return change;
  };
  for (const { providerId, classId, used } of freed) {
    const change = changeOf(providerId, classId);
    if (change !== undefined) change.freed += used;
  }
  const fieldsOf = (provider: Provider, classId: number): InventoryFields | undefined =>
    newInventories.get(provider.id)?.inventories.get(classId) ?? inventoryOf(provider, classId)?.fields;
  checkSomeInventory(fleet, wanted, fieldsOf);

  for (const { providerId, classId, used: amount } of wanted) {
    const change = changeOf(providerId, classId);
    if (change === undefined) continue; // never: its provider was found in the fleet
    const name = nameOf(fleet.classes, classId);
    const { uuid } = change.provider;
    const fields = fieldsOf(change.provider, classId);
    if (fields === undefined) throw invalidInventory(name, [change.provider]);
    const refuse = (what: string, fault: InventoryFault, numbers: string) =>
      new ClaimRefused(
        'invalid inventory',
        `Unable to create allocation for '${name}' on resource provider '${uuid}'. The requested amount would ${what}.`,
        { fault, numbers: `On ${change.provider.name} ${numbers}` },
      );
    if (!fitsUnits(fields, amount)) {
      const { minUnit, maxUnit, stepSize } = fields;
      const allowed = `an allocation of ${name} has ${minUnit} to ${maxUnit}, in steps of ${stepSize}`;
      throw refuse('violate inventory constraints', 'constraints', `${allowed}: ${amount} is asked for.`);
    }
    change.wanted += amount;
    const before = change.inventory?.used ?? 0;
    const others = before - change.freed;
    if (!mayBeUsed(fields, others + change.wanted, before)) {
      const used = `other consumers have ${others} of ${capacity(fields)} ${name}`;
      throw refuse('exceed the capacity', 'capacity', `${used}: ${change.wanted} is asked for.`);
    }
  }
  return [...usageChanges.values()];
}

const invalidInventory = (classNames: string, providers: readonly Provider[]) =>
  new ClaimRefused(
    'invalid inventory',
    `Inventory for '${classNames}' on resource provider '${providers.map(({ uuid }) => uuid).join(', ')}' invalid.`,
    { fault: 'absent', numbers: `There is no ${classNames} on ${providers.map(({ name }) => name).join(', ')}.` },
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
  throw invalidInventory(classIds.map((id) => nameOf(fleet.classes, id)).join(', '), without);
}

/** By provider id, the inventories that a reshape writes. */
export type NewInventories = ReadonlyMap<
  number,
  {
    readonly provider: Provider;
    readonly inventories: ReadonlyMap<number, InventoryFields>;
    /** The classes whose inventories are removed. */
    readonly removed: readonly number[];
  }
>;

/** Looks up the providers and classes of a reshape. @throws ClaimRefused */
export function judgeInventories(fleet: Fleet, claims: readonly InventoryClaim[]): NewInventories {
  const found = claims.map((claim) => {
    const provider = fleet.byUuid.get(claim.providerUuid);
    if (provider === undefined) {
      throw new ClaimRefused(
        'unknown inventory provider',
        `Resource provider ${claim.providerUuid} in inventories not found: ${noSuchProvider(claim.providerUuid)}`,
      );
    }
    if (provider.generation !== claim.knownGeneration) {
      throw new ClaimRefused(
        'provider generation',
        `resource provider generation conflict for provider ${claim.providerUuid}: ` +
          `actual: ${provider.generation}, given: ${claim.knownGeneration}`,
      );
    }
    return { provider, claim };
  });
  return new Map(
    found.map(({ provider, claim }) => {
      const inventories = new Map<number, InventoryFields>();
      for (const [name, fields] of claim.inventories) {
        const resourceClass = fleet.classes.byName.get(name);
        if (resourceClass === undefined) throw new ClaimRefused('unknown class', noSuchClass(name));
        inventories.set(resourceClass.id, fields);
      }
      const removed = provider.inventories.map(({ fields }) => fields.classId).filter((id) => !inventories.has(id));
      return [provider.id, { provider, inventories, removed }];
    }),
  );
}

/**
 * Checks that no inventory which the claim removes would still be used after its allocations are written.
 *
 * @throws ClaimRefused
 */
export function checkNothingLeft(
  fleet: Fleet,
  newInventories: NewInventories,
  usageChanges: readonly UsageChange[],
): void {
  for (const { provider, removed } of newInventories.values()) {
    const left = removed.filter((classId) => {
      const used = inventoryOf(provider, classId)?.used ?? 0;
      const change = usageChanges.find((each) => each.provider === provider && each.classId === classId);
      return used - (change?.freed ?? 0) + (change?.wanted ?? 0) > 0;
    });
    if (left.length === 0) continue;
    const names = left.map((id) => nameOf(fleet.classes, id));
    throw new ClaimRefused('inventory in use', inventoryInUse(names, provider.uuid));
  }
}
