import type { Provider, Slots } from './provider.ts';

/** Slots of providers in an order, in blocks, so that adding and removing one moves few others. */
type SortedSlots = {
  readonly blocks: readonly Block[];
  /** The position of the first slot for which `isBefore` is false; behind the last block if there is none. */
  find(isBefore: (slot: number) => boolean): ScanPosition;
  /** @returns the block that has the slot now; the `mostFree` of the block does not count the slot yet */
  add(slot: number): Block;
  /** Removes a slot, which must compare as it did when it was added. @returns whether the slot was there */
  remove(slot: number): boolean;
};

/** Some slots that follow each other in the order; at least one. */
export type Block = {
  readonly slots: readonly number[];
  /** By class id, what a single provider of these trees has free at most. The number may be too large if there are doubts. */
  mostFree: Map<number, number> | undefined;
  /** How often a slot was removed since, and how often `mostFree` was relied on after that. */
  doubts: number;
};

/** The number of a block, and an index in it. */
type ScanPosition = { readonly block: number; readonly index: number };

/** At this number of doubts `mostFree` is computed again, which takes as long as adding and removing some ten slots. */
const mostDoubts = 16;

/** Counts another doubt. */
export function doubt(block: Block): void {
  block.doubts += 1;
  if (block.doubts < mostDoubts) return;
  block.mostFree = undefined;
  block.doubts = 0;
}

type OwnBlock = Block & { readonly slots: number[] };

const newBlock = (slots: number[]): OwnBlock => ({ slots, mostFree: undefined, doubts: 0 });

/** The largest number of slots in a block. */
const mostInBlock = 128;

/** @param compare an order in which no two slots are equal */
export function sortSlots(slots: readonly number[], compare: (one: number, other: number) => number): SortedSlots {
  const sorted = slots.toSorted(compare);
  const blocks: OwnBlock[] = [];
  // Half full, so that there is room.
  for (let start = 0; start < sorted.length; start += mostInBlock / 2) {
    blocks.push(newBlock(sorted.slice(start, start + mostInBlock / 2)));
  }
  const find = (isBefore: (slot: number) => boolean): ScanPosition => {
    const block = firstFailing(blocks.length, (number) => isBefore(blocks[number]?.slots.at(-1) ?? 0));
    const { slots = none } = blocks[block] ?? {};
    return { block, index: firstFailing(slots.length, (index) => isBefore(slots[index] ?? 0)) };
  };
  return {
    blocks,
    find,
    add: (slot) => {
      const found = find((other) => compare(other, slot) < 0);
      // A slot behind all others is added to the end of the last block.
      const number = Math.min(found.block, Math.max(0, blocks.length - 1));
      const block = blocks[number];
      if (block === undefined) {
        const only = newBlock([slot]);
        blocks.push(only);
        return only;
      }
      block.slots.splice(number === found.block ? found.index : block.slots.length, 0, slot);
      if (block.slots.length <= mostInBlock) return block;
      block.mostFree = undefined;
      blocks.splice(number + 1, 0, newBlock(block.slots.splice(mostInBlock / 2)));
      return block;
    },
    remove: (slot) => {
      const { block: number, index } = find((other) => compare(other, slot) < 0);
      const block = blocks[number];
      if (block?.slots[index] !== slot) return false;
      block.slots.splice(index, 1);
      doubt(block);
      if (block.slots.length === 0) blocks.splice(number, 1);
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
  readonly #slots: Slots;

  constructor(slots: Slots) {
    this.#slots = slots;
  }

  /** The providers that have this key. */
  of(key: Key): ProviderSet {
    return this.#sets.get(key) ?? noProviders;
  }

  /**
   * The inner list whose keys have the fewest providers, and at most how many providers have them: a provider may have several of the keys.
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
    if (most > mostJoined * this.#slots.providers.length) return this.#all();
    return new Set(keys.flatMap((key) => [...this.of(key)]));
  }

  /** All providers of the fleet. */
  #all(): ProviderSet {
    const { providers } = this.#slots;
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

  /** Replaces a provider by its copy. In a dense set both have the same slot, so nothing changes. */
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
    if (set instanceof Set && set.size > fewest && set.size * sparse > this.#slots.providers.length) {
      this.#sets.set(key, new DenseSet(this.#slots, set));
    }
  }
}

/** If the sets of several keys together have this many times as many entries as there are providers, the set of all is faster. */
const mostJoined = 4;

/** If at least one of this number of providers has a key, one bit for each provider needs less memory than a `Set`. */
const sparse = 256;

/** A `Set` of up to this number of providers is never replaced by bits: its memory does not matter. */
const fewest = 64;

/**
 * A set of many providers of a fleet, as one bit for each slot: a `Set` needs about 250 times as much memory for each
 * provider in it. If the set changes during an iteration, the iteration yields at least the providers that stay in the set.
 */
class DenseSet {
  readonly #slots: Slots;
  #bits = new Uint32Array();
  #size = 0;

  constructor(slots: Slots, providers: Iterable<Provider>) {
    this.#slots = slots;
    for (const provider of providers) this.add(provider);
  }

  get size(): number {
    return this.#size;
  }

  has({ slot }: Provider): boolean {
    return ((this.#bits[slot >>> 5] ?? 0) & (1 << (slot & 31))) !== 0;
  }

  add(provider: Provider): void {
    if (this.has(provider)) return;
    const { slot } = provider;
    const word = slot >>> 5;
    if (word >= this.#bits.length) {
      const longer = new Uint32Array(Math.max(word + 1, 2 * this.#bits.length));
      longer.set(this.#bits);
      this.#bits = longer;
    }
    this.#bits[word] = (this.#bits[word] ?? 0) | (1 << (slot & 31));
    this.#size++;
  }

  delete(provider: Provider): void {
    if (!this.has(provider)) return;
    const word = provider.slot >>> 5;
    this.#bits[word] = (this.#bits[word] ?? 0) & ~(1 << (provider.slot & 31));
    this.#size--;
  }

  *[Symbol.iterator](): Generator<Provider> {
    for (let word = 0; word < this.#bits.length; word++) {
      // The lowest bit first; each step clears it.
      for (let bits = this.#bits[word] ?? 0; bits !== 0; bits &= bits - 1) {
        const provider = this.#slots.providers[32 * word + 31 - Math.clz32(bits & -bits)];
        if (provider !== undefined) yield provider;
      }
    }
  }
}
