import { exactCapacity } from '../../placement/inventory.ts';
import type { Fleet } from './fleet.ts';
import { type Effect, showEffects } from './own_writes.ts';
import { type Inventory, inventoryOf, type Provider, type TreeFindings } from './provider.ts';

/** Usage that the fleet shows for a time in which nothing is awaited, so that no request sees it. */
export type Supposition = {
  /** Shows effects in addition. */
  add(effects: readonly Effect[]): void;
  /**
   * Shows that the usage of a claim's consumers is gone. Where more is used than the capacity, as much may be used again: a claim
   * may keep what its consumers have. To be called once, before `add`.
   */
  free(effects: readonly Effect[]): void;
  /** Takes back all that was shown. */
  end(): void;
};

/**
 * Lets the fleet show usage that is not there, such as that of claims which are not written yet. It must end before
 * anything is awaited. Of several suppositions, the one that began last must end first.
 */
export function suppose(fleet: Fleet): Supposition {
  const shown: Effect[] = [];
  /** What was cached with the trees before: it is right again when the supposition ends. */
  const cached = new Map<Provider, TreeFindings | undefined>();
  /** The fields that inventories had before more was tolerated. */
  const replaced = new Map<Inventory, Inventory['fields']>();
  const add = (effects: readonly Effect[]): void => {
    for (const { providerId } of effects) {
      const root = fleet.byId.get(providerId)?.root;
      if (root !== undefined && !cached.has(root)) cached.set(root, root.findings);
    }
    showEffects(fleet, { effects }, 1);
    shown.push(...effects);
  };
  return {
    add,
    free(effects) {
      for (const { providerId, used } of effects) {
        const provider = fleet.byId.get(providerId);
        if (provider === undefined) continue;
        for (const { classId } of used) {
          const inventory = inventoryOf(provider, classId);
          if (inventory === undefined || replaced.has(inventory)) continue;
          if (inventory.used <= exactCapacity(inventory.fields)) continue;
          replaced.set(inventory, inventory.fields);
          inventory.fields = { ...inventory.fields, tolerated: inventory.used };
          fleet.tolerating.add(provider.root);
        }
      }
      add(effects);
    },
    end() {
      for (const [inventory, fields] of replaced) inventory.fields = fields;
      if (replaced.size > 0) fleet.tolerating.clear();
      showEffects(fleet, { effects: shown }, -1);
      for (const [root, findings] of cached) root.findings = findings;
      shown.length = 0;
      cached.clear();
      replaced.clear();
    },
  };
}
