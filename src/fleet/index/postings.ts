import type { Provider } from '../model/provider.ts';
import type { Places } from '../model/providers_by_id.ts';

/** Places of providers in an order, in blocks, so that adding and removing one moves few others. */
type SortedPlaces = {
  readonly blocks: readonly Block[];
  /** The first place that is not before what is looked for; behind the last block where all are. */
  find(isBefore: (place: number) => boolean): ScanPosition;
  /** @returns the block that has it now, whose `mostFree` leaves it out */
  add(place: number): Block;
  /** Removes a place, which must compare as it did when it was added. @returns whether it was there */
  remove(place: number): boolean;
};

/** Some places that follow each other in the order; at least one. */
export type Block = {
  readonly places: readonly number[];
  /** By class id, what a single provider of these trees has free at most. It may be too much if there are doubts. */
  mostFree: Map<number, number> | undefined;
  /** How often a place was removed since, and how often `mostFree` was relied on after that. */
  doubts: number;
};

/** The number of a block, and an index in it. */
type ScanPosition = { readonly block: number; readonly index: number };

/** At this number of doubts `mostFree` is computed anew: that takes as long as adding and removing some ten places. */
const mostDoubts = 16;

/** Counts one doubt more. */
export function doubt(block: Block): void {
  block.doubts += 1;
  if (block.doubts < mostDoubts) return;
  block.mostFree = undefined;
  block.doubts = 0;
}

type OwnBlock = Block & { readonly places: number[] };

const newBlock = (places: number[]): OwnBlock => ({ places, mostFree: undefined, doubts: 0 });

/** The largest number of places in a block. */
const mostInBlock = 128;

/** @param compare an order in which no two places are equal */
export function sortPlaces(places: readonly number[], compare: (one: number, other: number) => number): SortedPlaces {
  const sorted = places.toSorted(compare);
  const blocks: OwnBlock[] = [];
  // Half full, so that there is room.
  for (let start = 0; start < sorted.length; start += mostInBlock / 2) {
    blocks.push(newBlock(sorted.slice(start, start + mostInBlock / 2)));
  }
  const find = (isBefore: (place: number) => boolean): ScanPosition => {
    const block = firstFailing(blocks.length, (number) => isBefore(blocks[number]?.places.at(-1) ?? 0));
    const { places = none } = blocks[block] ?? {};
    return { block, index: firstFailing(places.length, (index) => isBefore(places[index] ?? 0)) };
  };
  return {
    blocks,
    find,
    add: (place) => {
      const found = find((other) => compare(other, place) < 0);
      // What comes behind all others goes to the end of the last block.
      const number = Math.min(found.block, Math.max(0, blocks.length - 1));
      const block = blocks[number];
      if (block === undefined) {
        const only = newBlock([place]);
        blocks.push(only);
        return only;
      }
      block.places.splice(number === found.block ? found.index : block.places.length, 0, place);
      if (block.places.length <= mostInBlock) return block;
      block.mostFree = undefined;
      blocks.splice(number + 1, 0, newBlock(block.places.splice(mostInBlock / 2)));
      return block;
    },
    remove: (place) => {
      const { block: number, index } = find((other) => compare(other, place) < 0);
      const block = blocks[number];
      if (block?.places[index] !== place) return false;
      block.places.splice(index, 1);
      doubt(block);
      if (block.places.length === 0) blocks.splice(number, 1);
      return true;
    },
  };
}

const none: readonly never[] = [];

/**
 * The first number from 0 on that fails a test, by binary search; `length` if none fails. After that number the test must
 * fail for all.
 */
export function firstFailing(length: number, holds: (number: number) => boolean): number {
  let first = 0;
  let last = length;
  while (first < last) {
    const middle = (first + last) >>> 1;
    if (holds(middle)) first = middle + 1;
    else last = middle;
  }
  return first;
}

/** Some providers of a fleet. */
type ProviderSet = Iterable<Provider> & { readonly size: number; has(provider: Provider): boolean };

const noProviders: ProviderSet = new Set();

/** For each key (a class, a trait, an aggregate) the providers that have it. */
export class Postings<Key> {
  readonly #sets = new Map<Key, Set<Provider> | DenseSet>();
  readonly #places: Places;

  constructor(places: Places) {
    this.#places = places;
  }

  /** The providers that have this key. */
  of(key: Key): ProviderSet {
    return this.#sets.get(key) ?? noProviders;
  }

  /**
   * The inner list whose keys have the fewest providers, and how many these are at most: a provider may have several of the keys.
   *
   * @param required a condition: at least one key of each inner list; not empty
   */
  fewest(required: readonly (readonly Key[])[]): { readonly keys: readonly Key[]; readonly most: number } {
    const sizeOf = (anyOf: readonly Key[]) => anyOf.reduce((sum, key) => sum + this.of(key).size, 0);
    let keys: readonly Key[] = [];
    let most = Number.POSITIVE_INFINITY;
    for (const anyOf of required) {
      const size = sizeOf(anyOf);
      if (size < most) [keys, most] = [anyOf, size];
    }
    return { keys, most };
  }

  /**
   * A set that contains every provider that satisfies the condition, and usually others: the providers of the inner
   * list with the fewest providers.
   *
   * @param required the condition: at least one key of each inner list; not empty
   */
  smallest(required: readonly (readonly Key[])[]): ProviderSet {
    const { keys, most } = this.fewest(required);
    const [only] = keys;
    if (keys.length === 1 && only !== undefined) return this.of(only);
    // Many providers may have each of thousands of keys.
    if (most > mostJoined * this.#places.providers.length) return this.#all();
    return new Set(keys.flatMap((key) => [...this.of(key)]));
  }

  /** All providers of the fleet. */
  #all(): ProviderSet {
    const { providers } = this.#places;
    const all = new Set<Provider>();
    for (const provider of providers) if (provider !== undefined) all.add(provider);
    return all;
  }

  /** The keys that at least one provider has. Only tests call it: a key without providers must not stay. */
  keys(): Iterable<Key> {
    return this.#sets.keys();
  }

  /** Removes the provider from its old keys and adds it to its new ones. */
  move(provider: Provider, from: readonly Key[], to: readonly Key[]): void {
    for (const key of from) {
      if (to.includes(key)) continue;
      const set = this.#sets.get(key);
      set?.delete(provider);
      if (set?.size === 0) this.#sets.delete(key);
    }
    for (const key of to) this.#add(key, provider);
  }

  /** Puts a copy of a provider where the provider was. A dense set has its place, which is that of the copy. */
  replace(provider: Provider, copy: Provider, keys: readonly Key[]): void {
    for (const key of keys) {
      const set = this.#sets.get(key);
      if (set instanceof Set && set.delete(provider)) set.add(copy);
    }
  }

  #add(key: Key, provider: Provider): void {
    const set = this.#sets.get(key);
    if (set === undefined) {
      this.#sets.set(key, new Set([provider]));
      return;
    }
    set.add(provider);
    if (set instanceof Set && set.size > fewest && set.size * sparse > this.#places.providers.length) {
      this.#sets.set(key, new DenseSet(this.#places, set));
    }
  }
}

/** If the providers of several keys together are so many times as many as there are, the set of all takes less time. */
const mostJoined = 4;

/** If at least one of this number of providers has a key, one bit for each provider needs less memory than a `Set`. */
const sparse = 256;

/** A `Set` of up to this number of providers is always kept: its memory does not matter. */
const fewest = 64;

/**
 * A set of many providers of a fleet, as one bit for each place: a `Set` needs about 250 times as much memory for each
 * provider in it. An iteration during which the set changes yields at least the providers that are in it all the time.
 */
class DenseSet {
  readonly #places: Places;
  #bits = new Uint32Array();
  #size = 0;

  constructor(places: Places, providers: Iterable<Provider>) {
    this.#places = places;
    for (const provider of providers) this.add(provider);
  }

  get size(): number {
    return this.#size;
  }

  has({ place }: Provider): boolean {
    return ((this.#bits[place >>> 5] ?? 0) & (1 << (place & 31))) !== 0;
  }

  add(provider: Provider): void {
    if (this.has(provider)) return;
    const { place } = provider;
    const word = place >>> 5;
    if (word >= this.#bits.length) {
      const longer = new Uint32Array(Math.max(word + 1, 2 * this.#bits.length));
      longer.set(this.#bits);
      this.#bits = longer;
    }
    this.#bits[word] = (this.#bits[word] ?? 0) | (1 << (place & 31));
    this.#size++;
  }

  delete(provider: Provider): void {
    if (!this.has(provider)) return;
    const word = provider.place >>> 5;
    this.#bits[word] = (this.#bits[word] ?? 0) & ~(1 << (provider.place & 31));
    this.#size--;
  }

  *[Symbol.iterator](): Generator<Provider> {
    for (let word = 0; word < this.#bits.length; word++) {
      // The lowest bit first; each step clears it.
      for (let bits = this.#bits[word] ?? 0; bits !== 0; bits &= bits - 1) {
        const provider = this.#places.providers[32 * word + 31 - Math.clz32(bits & -bits)];
        if (provider !== undefined) yield provider;
      }
    }
  }
}
