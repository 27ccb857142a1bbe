/** Numbers from 0 to 1 that look random, the same ones for each seed. */
export type Random = () => number;

/** Makes a source of such numbers (mulberry32). */
export function openRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One of several, each with a weight. */
export function chosen<Items extends readonly [Weighted, ...Weighted[]]>(random: Random, items: Items): Items[number] {
  let rest = random() * items.reduce((sum, { weight }) => sum + weight, 0);
  for (const item of items) {
    rest -= item.weight;
    if (rest < 0) return item;
  }
  return items[0];
}

type Weighted = { readonly weight: number };
