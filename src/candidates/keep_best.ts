import type { Provider } from '../fleet/provider.ts';

/** The best of all items that were noted. */
export type Best<Item> = {
  note(item: Item): void;
  /** The item that a better one would push out; undefined while there is room for more. */
  worst(): Item | undefined;
  /** The best items, the best one first. */
  list(): readonly Item[];
};

/**
 * Keeps the best of many items.
 *
 * @param limit how many are kept
 * @param compare negative if the first item is better than the second
 */
export function keepBest<Item>(limit: number, compare: (one: Item, other: Item) => number): Best<Item> {
  const items: Item[] = [];
  const worst = (): Item | undefined => (items.length >= limit ? items.at(-1) : undefined);
  return {
    note: (item) => {
      const last = worst();
      if (limit === 0 || (last !== undefined && compare(item, last) >= 0)) return;
      const before = items.findIndex((other) => compare(item, other) < 0);
      items.splice(before === -1 ? items.length : before, 0, item);
      if (items.length > limit) items.pop();
    },
    worst,
    list: () => items,
  };
}

/** The order of providers by name; by UUID if names are equal, which only those without a name are. */
export const byName = (a: Provider, b: Provider): number =>
  compareTexts(a.name, b.name) || compareTexts(a.uuid, b.uuid);

const compareTexts = (a: string, b: string): number => (a < b ? -1 : Number(a > b));
