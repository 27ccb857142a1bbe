/**
 * Runs a call for each item, several at a time, and keeps the order of the results. After a failure no further one begins, and what is
 * under way is finished.
 *
 * @param atOnce how many calls run at the same time
 * @throws the first failure
 */
export async function forEach<Item, Result>(
  items: readonly Item[],
  call: (item: Item) => Promise<Result>,
  atOnce = 8,
): Promise<readonly Result[]> {
  const results: Result[] = new Array(items.length);
  const failures: unknown[] = [];
  const rest = items.entries();
  const work = async (): Promise<void> => {
    for (const [index, item] of rest) {
      if (failures.length > 0) return;
      try {
        results[index] = await call(item);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  if (failures.length > 0) throw failures[0];
  return results;
}
