/**
 * The order in which anchors, and what they offer, are visited. Where all anchors are, a random start will do: neighbours lie
 * beside each other in memory, and jumping between 10,000 hosts takes four times as long as passing them.
 */
export type Order = 'steady' | 'rotated' | 'random';

/** A list in order, or in a random one. */
export const walk = <Item>(items: readonly Item[], order: Order): Iterable<Item> =>
  order === 'steady' || items.length < 2 ? items : wander(items, order);

/** As `walk`, for lists so short that stopping in between saves nothing. */
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
 * A random order without shuffling: from a random place by a random step that shares no divisor with the length of the list,
 * so that every element is met once. Rotated, the step is one.
 */
function wayThrough(length: number, order: Order): { readonly place: number; readonly step: number } {
  let step = order === 'rotated' ? 1 : 1 + Math.floor(Math.random() * length);
  while (greatestCommonDivisor(step, length) !== 1) step++;
  return { place: Math.floor(Math.random() * length), step };
}

const greatestCommonDivisor = (a: number, b: number): number => (b === 0 ? a : greatestCommonDivisor(b, a % b));
