/**
 * The order in which anchors and their choices are visited: `steady` as they are listed, `rotated` as they are listed
 * but from a random start, or `random`. A search for all candidates visits all anchors, so `rotated` is random enough
 * for it. It is faster: anchors that follow each other in the list are neighbours in memory. 10,000 hosts in random
 * order take four times as long.
 */
export type Order = 'steady' | 'rotated' | 'random';

/** The items of a list in an order. */
export const walk = <Item>(items: readonly Item[], order: Order): Iterable<Item> =>
  order === 'steady' || items.length < 2 ? items : wander(items, order);

/**
 * As `walk`, but the whole list is made at once: for lists so short that it does not matter if only the first items are
 * used.
 */
export function inOrder<Item>(items: readonly Item[], order: Order): readonly Item[] {
  const { length } = items;
  if (order === 'steady' || length < 2) return items;
  const { place, step } = wayThrough(length, order);
  return items.map((item, count) => items[(place + count * step) % length] ?? item);
}

function* wander<Item>(items: readonly Item[], order: Order): Generator<Item> {
  const { length } = items;
  let { place, step } = wayThrough(length, order);
  for (let visited = 0; visited < length; visited++) {
    const item = items[place];
    if (item !== undefined) yield item;
    place = (place + step) % length;
  }
}

/**
 * An order without shuffling: from a random place by a random step (`rotated`: by 1). The step shares no divisor with
 * the length of the list, so each item is visited once.
 */
function wayThrough(length: number, order: Order): { readonly place: number; readonly step: number } {
  let step = order === 'rotated' ? 1 : 1 + Math.floor(Math.random() * length);
  while (greatestCommonDivisor(step, length) !== 1) step++;
  return { place: Math.floor(Math.random() * length), step };
}

const greatestCommonDivisor = (a: number, b: number): number => (b === 0 ? a : greatestCommonDivisor(b, a % b));
