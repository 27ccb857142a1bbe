/**
 * Runs a call for each item, several at a time, and keeps the order of the results.
 *
 * @param atOnce how many calls run at the same time
 */
export async function forEach<Item, Result>(
  items: readonly Item[],
  call: (item: Item) => Promise<Result>,
  atOnce = 8,
): Promise<readonly Result[]> {
  const results: Result[] = new Array(items.length);
  let next = 0;
  const work = async (): Promise<void> => {
    for (;;) {
      const index = next++;
      const item = items[index];
      if (item === undefined) return;
      results[index] = await call(item);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return results;
}
