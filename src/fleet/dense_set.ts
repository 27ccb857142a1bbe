import type { Places } from './places.ts';
import type { Provider } from './provider.ts';

/**
 * A set of many providers of a fleet, as one bit for each place: a `Set` needs about 250 times as much memory for each
 * provider in it. An iteration during which the set changes yields at least the providers that are in it all the time.
 */
export class DenseSet {
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
