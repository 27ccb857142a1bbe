import type { Provider } from '../fleet/model/provider.ts';
import { keyValue, type TreeKey } from '../fleet/model/tree_order.ts';

/**
 * The order in which anchors and their choices are visited: `steady` as they are listed, `rotated` as they are listed
 * but from a random start, or `random`. A search for all candidates visits all anchors, so `rotated` is random enough
 * for such a search. `rotated` is faster: anchors that follow each other in the list are neighbours in memory. 10,000 hosts in random
 * order take four times as long.
 */
export type VisitOrder = 'steady' | 'rotated' | 'random';

/** The items of a list in an order. `rotated` gives a copy of the list, which takes less time than a generator. */
export function walk<Item>(items: readonly Item[], order: VisitOrder): Iterable<Item> {
  if (order === 'steady' || items.length < 2) return items;
  if (order === 'random') return visit(items, order);
  const { index } = wayThrough(items.length, order);
  return items.slice(index).concat(items.slice(0, index));
}

/** Items that are found by number. */
type Listed<Item> = { readonly length: number; at(index: number): Item | undefined };

/** As `walk`, for lists that are not arrays. */
export function* visit<Item>(items: Listed<Item>, order: VisitOrder): Generator<Item> {
  const { length } = items;
  let { index, step } = order === 'steady' || length < 2 ? { index: 0, step: 1 } : wayThrough(length, order);
  for (let visited = 0; visited < length; visited++) {
    const item = items.at(index);
    if (item !== undefined) yield item;
    index = (index + step) % length;
  }
}

/** How providers that are equal by all keys are preferred: a lower number comes first. */
export type ProviderRank = (provider: Provider) => number;

/** The order in which the providers of a tree are visited: by the keys of the query's `order`, then by `rank`, then by `equals`. */
export type ProviderOrder =
  | VisitOrder
  | { readonly keys: readonly TreeKey[]; readonly rank: ProviderRank | undefined; readonly equals: VisitOrder };

/** Sorts providers. It does the same as `walk`, for lists so short that stopping early saves nothing. */
export function orderProviders(providers: readonly Provider[], order: ProviderOrder): readonly Provider[] {
  const { length } = providers;
  if (order === 'steady' || length < 2) return providers;
  if (typeof order === 'object') return sortedBy(order, orderProviders(providers, order.equals));
  const { index, step } = wayThrough(length, order);
  return providers.map((provider, count) => providers[(index + count * step) % length] ?? provider);
}

function sortedBy(
  { keys, rank }: Exclude<ProviderOrder, VisitOrder>,
  providers: readonly Provider[],
): readonly Provider[] {
  const valued = providers.map((provider) => ({
    provider,
    values: keys.map((key) => keyValue(key, [provider])),
    rank: rank?.(provider) ?? 0,
  }));
  valued.sort((one, other) => {
    for (const [index, value] of one.values.entries()) {
      const difference = value - (other.values[index] ?? 0);
      if (difference !== 0) return difference;
    }
    return one.rank - other.rank;
  });
  return valued.map(({ provider }) => provider);
}

/**
 * An order without shuffling: from a random index by a random step (`rotated`: by 1). The step shares no divisor with
 * the length of the list, so each item is visited once.
 */
function wayThrough(length: number, order: VisitOrder): { readonly index: number; readonly step: number } {
  let step = order === 'rotated' ? 1 : 1 + Math.floor(Math.random() * length);
  while (greatestCommonDivisor(step, length) !== 1) step++;
  return { index: Math.floor(Math.random() * length), step };
}

/** The best of all items that were noted. */
type Best<Item> = {
  note(item: Item): void;
  /** The item that a better one would replace; undefined while there is room for more. */
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
  /** The index behind all items that are as good or better. Halving is fast also where many are kept. */
  const indexFor = (item: Item): number => {
    let [low, high] = [0, items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = items[middle];
      if (other !== undefined && compare(item, other) < 0) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  return {
    note: (item) => {
      const last = worst();
      if (limit === 0 || (last !== undefined && compare(item, last) >= 0)) return;
      items.splice(indexFor(item), 0, item);
      if (items.length > limit) items.pop();
    },
    worst,
    list: () => items,
  };
}

/** The order of providers by name, then by UUID: only providers without a name have equal names. */
export const byName = (a: Provider, b: Provider): number =>
  compareTexts(a.name, b.name) || compareTexts(a.uuid, b.uuid);

const compareTexts = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

/** The largest whole number that divides both; `a` if `b` is 0. */
export const greatestCommonDivisor = (a: number, b: number): number => (b === 0 ? a : greatestCommonDivisor(b, a % b));
