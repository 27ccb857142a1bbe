/** More different values than that are not worth looking for: hosts are bought by the hundred, and are alike. */
const usualLimit = 10_000;

/**
 * Lets values that are alike be one: of 100,000 hosts most have the inventories, traits and aggregates of another, and each need
 * not have objects of its own for them. The values must never be changed.
 *
 * @param limit so many are known; one more, and all are forgotten
 * @returns a function that takes a value and a key, which tells values apart, and gives an earlier value of this key instead
 *   where it knows one.
 */
export function interning<Value>(limit = usualLimit): (key: string, value: Value) => Value {
  const known = new Map<string, Value>();
  return (key, value) => {
    const earlier = known.get(key);
    if (earlier !== undefined) return earlier;
    if (known.size >= limit) known.clear();
    known.set(key, value);
    return value;
  };
}
