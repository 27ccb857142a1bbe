import type { Fleet } from '../fleet/fleet.ts';
import { nameOf } from '../fleet/names.ts';
import { inventoryOf, type Provider } from '../fleet/provider.ts';
import type { InventoryFields } from '../placement/inventory.ts';
import { inventoryInUse, noSuchClass, noSuchProvider } from '../rest/errors.ts';
import { ClaimRefused, type InventoryClaim } from './claim.ts';
import type { UsageChange } from './judge_capacity.ts';

/** By provider id, the inventories that a reshape gives it. */
export type NewInventories = ReadonlyMap<
  number,
  {
    readonly provider: Provider;
    readonly inventories: ReadonlyMap<number, InventoryFields>;
    /** The classes that it loses. */
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
