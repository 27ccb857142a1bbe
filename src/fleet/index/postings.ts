import type { Provider } from '../model/provider.ts';
import type { Places } from '../model/providers_by_id.ts';

/** Some providers of a fleet. */
export type ProviderSet = Iterable<Provider> & { readonly size: number; has(provider: Provider): boolean };

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
