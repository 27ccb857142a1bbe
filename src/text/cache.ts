/**
 * A map that keeps at most `most` entries: one more, and the entry that was set longest ago is forgotten. An entry that is set again
 * counts as new, so an entry that is set at each use is kept. Getting an entry costs no more than in a map.
 */
export class Cache<Key, Value> extends Map<Key, Value> {
  readonly #most: number;
  /**
   * Iterates over each key once, the oldest first. Visited keys are deleted, so the next key is the oldest one. A new iterator for each
   * entry that is forgotten would pass over the gaps of all that were forgotten before: 90 us at 10,000 entries, instead of 4.
   */
  readonly #oldest = this.keys();

  constructor(most: number) {
    super();
    this.#most = most;
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
    super.set(key, value);
    if (this.size > this.#most) {
      const { value: oldest, done } = this.#oldest.next();
      if (!done) this.delete(oldest);
    }
    return this;
  }
}

/** A function that caches its results by key. If there are more than `most`, the oldest result is dropped. */
export function remembering<Key, Value>(
  make: (key: Key) => Value,
  most = Number.POSITIVE_INFINITY,
): (key: Key) => Value {
  const known = new Cache<Key, Value>(most);
  return (key) => {
    const earlier = known.get(key);
    if (earlier !== undefined) return earlier;
    const made = make(key);
    known.set(key, made);
    return made;
  };
}

/**
 * Shares one object between equal values, to save memory: of 100,000 hosts most have the same inventories, traits and
 * aggregates as other hosts. The values must never be changed.
 *
 * @param most how many values are remembered: hosts are bought by the hundred and are alike, so there are few
 * @returns a function that takes a value and its key; equal values have equal keys. It returns the earlier value with
 *   this key, if it remembers one.
 */
export function interning<Value>(most = 10_000): (key: string, value: Value) => Value {
  const known = new Cache<string, Value>(most);
  return (key, value) => {
    const earlier = known.get(key);
    if (earlier !== undefined) return earlier;
    known.set(key, value);
    return value;
  };
}
