import { exactCapacity } from '../../placement/inventory.ts';
import { type Fleet, noteChange } from './fleet.ts';
import { type Inventory, inventoryOf, type Provider, type TreeCache } from './provider.ts';

/** An amount of a class that counts as used at a provider; a negative one counts as free. */
export type Amount = { readonly provider: Provider; readonly classId: number; readonly amount: number };

/** Usage that the fleet shows between two `await`s, so that no other request sees it. */
export type Overlay = {
  /** Shows amounts in addition. */
  add(amounts: readonly Amount[]): void;
  /**
   * Shows the present allocations of the consumers of a claim as free. Where more than the capacity is used, the same usage is allowed
   * again: a claim may keep the allocations of its consumers. To be called once, before `add`.
   *
   * @param amounts the present allocations of the consumers
   */
  free(amounts: readonly Amount[]): void;
  /** Hides all amounts. */
  hide(): void;
  /** Shows again what was added and then hidden. */
  show(): void;
};

/**
 * Lets the fleet show usage that is not in the database, such as the usage of claims that are not written yet. The overlay must be hidden
 * before the next `await`. Of several overlays, the one that was opened last must be hidden first.
 *
 * @param fleet the orders, lists and caches that must follow the usage. Without it only the inventories show the usage, which is
 *   enough for work that reads nothing else; the inventories may then be of a held snapshot
 */
export function openOverlay(fleet?: Fleet): Overlay {
  const shown: Amount[] = [];
  /** The former caches of the trees: they are valid again when the overlay is hidden. */
  const cached = new Map<Provider, TreeCache | undefined>();
  /** The fields of inventories before usage beyond the capacity was tolerated. */
  const replaced = new Map<Inventory, Inventory['fields']>();
  const use = (amounts: readonly Amount[], sign: 1 | -1): void => {
    let noted: Provider | undefined;
    for (const { provider, classId, amount } of amounts) {
      const inventory = inventoryOf(provider, classId);
      if (inventory !== undefined) inventory.used += sign * amount;
      const { root } = provider;
      // Successive amounts of the same tree need one note.
      if (fleet === undefined || root === noted) continue;
      if (!cached.has(root)) cached.set(root, root.cache);
      noteChange(fleet, provider);
      noted = root;
    }
  };
  const add = (amounts: readonly Amount[]): void => {
    use(amounts, 1);
    shown.push(...amounts);
  };
  return {
    add,
    free(amounts) {
      for (const { provider, classId } of amounts) {
        const inventory = inventoryOf(provider, classId);
        if (inventory === undefined || replaced.has(inventory)) continue;
        if (inventory.used <= exactCapacity(inventory.fields)) continue;
        replaced.set(inventory, inventory.fields);
        inventory.fields = { ...inventory.fields, tolerated: inventory.used };
        fleet?.tolerating.add(provider.root);
      }
      add(amounts.map((each) => ({ ...each, amount: -each.amount })));
    },
    hide() {
      for (const [inventory, fields] of replaced) inventory.fields = fields;
      if (replaced.size > 0) fleet?.tolerating.clear();
      replaced.clear();
      use(shown, -1);
      for (const [root, cache] of cached) root.cache = cache;
      cached.clear();
    },
    show() {
      use(shown, 1);
    },
  };
}
