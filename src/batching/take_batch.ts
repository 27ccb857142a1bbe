/** What the choice of a batch depends on. */
export type Batchable = {
  /** Keys of the item. Of two items with a common key, the later one waits for the earlier one. */
  readonly order: readonly string[];
  /** The largest batch that the item may be part of; 1 if it must be alone. */
  readonly share: number;
  /** As how many items it counts for the size of a batch. */
  readonly weight: number;
  /** Whether what the item itself waits for is there. */
  readonly isReady: boolean;
};

/**
 * Chooses the next batch: all items that can go now, in the order of the queue. It ends before the first item that would
 * make it too large.
 *
 * @param limit the largest number of items
 * @param isFree whether what an item needs is neither locked nor in use
 * @param keep is called with each item that must wait, except for those that only find no room in this batch
 */
export function takeBatch<Item extends Batchable>(
  queue: readonly Item[],
  limit: number,
  isFree: (item: Item) => boolean,
  keep: (item: Item) => void = () => {},
): Item[] {
  const earlier = new Set<string>();
  const batch: Item[] = [];
  let size = limit;
  let weight = 0;
  for (const item of queue) {
    if (batch.length >= size) break;
    const isNext = item.order.every((key) => !earlier.has(key));
    for (const key of item.order) earlier.add(key);
    if (!isNext || !item.isReady || !isFree(item)) {
      keep(item);
      continue;
    }
    if (item.share <= batch.length || (batch.length > 0 && weight + item.weight > limit)) break;
    batch.push(item);
    weight += item.weight;
    size = Math.min(size, item.share);
  }
  return batch;
}
