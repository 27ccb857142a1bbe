import type { Places } from './places.ts';
import type { Provider } from './provider.ts';
import type { TreeKey } from './tree_keys.ts';
import { type LivingTreeOrder, orderTrees, type TreeOrder } from './tree_order.ts';

/**
 * Orders of the trees of a fleet. An order is made when it is first asked for, and then follows the fleet. It is given up
 * when others are asked for, or when a quarter of the trees has changed since it was asked for last.
 */
export type TreeOrders = {
  /** The trees in the order of some keys, as they are now. */
  of(keys: readonly TreeKey[]): TreeOrder;
  /** How many orders were made so far. */
  readonly made: number;
  /** Notes that the tree of a root may have changed, or that a provider became a root or is one no more. */
  note(provider: Provider): void;
  /** Drops a provider that is about to lose its place in the fleet. */
  forget(provider: Provider): void;
};

/** The largest number of orders that are kept. */
const mostOrders = 8;

/** @param roots the roots of the fleet, which change with it */
export function createTreeOrders(roots: readonly Provider[], places: Places): TreeOrders {
  /** In the order of their last use. */
  const kept = new Map<string, LivingTreeOrder>();
  let made = 0;
  const make = (keys: readonly TreeKey[]): LivingTreeOrder => {
    made += 1;
    for (const oldest of kept.keys()) if (kept.size >= mostOrders) kept.delete(oldest);
    return orderTrees(keys, roots, places);
  };
  return {
    get made() {
      return made;
    },
    of: (keys) => {
      const name = JSON.stringify(keys);
      const order = kept.get(name) ?? make(keys);
      kept.delete(name);
      kept.set(name, order);
      order.bringUpToDate();
      return order;
    },
    note: (provider) => {
      if (kept.size === 0) return;
      for (const [name, order] of kept) if (!order.note(provider)) kept.delete(name);
    },
    forget: (provider) => {
      for (const order of kept.values()) order.forget(provider);
    },
  };
}
