/**
 * How many different values are remembered by default: hosts are bought by the hundred and are alike, so there are few.
 */
const usualLimit = 10_000;

/**
 * Shares one object between equal values, to save memory: of 100,000 hosts most have the same inventories, traits and
 * aggregates as other hosts. The values must never be changed.
 *
 * @param limit how many values are remembered; before one more is added, all are forgotten
 * @returns a function that takes a value and its key; equal values have equal keys. It returns the earlier value with
 *   this key, if it remembers one.
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
