/** What a batch is chosen by. */
export type Queued = {
  /** What it must be done in order with: of two that have one of these in common the later waits for the earlier. */
  readonly order: readonly string[];
  /** How many may go together where it is one of them; 1 for one that goes by itself. */
  readonly share: number;
  /** Whether it can go now, as far as it alone is concerned. */
  readonly isReady: boolean;
};

/**
 * Chooses the next batch: in the order of the queue, all that can go now. It ends before the first that would make it too large.
 *
 * @param limit how many go together at most
 * @param isFree whether what one of them needs is not locked or in use by what is under way
 * @param keep is told of each that must wait, other than for a place in a batch
 */
export function takeBatch<Entry extends Queued>(
  queue: readonly Entry[],
  limit: number,
  isFree: (entry: Entry) => boolean,
  keep: (entry: Entry) => void = () => {},
): Entry[] {
  const earlier = new Set<string>();
  const batch: Entry[] = [];
  let size = limit;
  for (const entry of queue) {
    if (batch.length >= size) break;
    const isNext = entry.order.every((key) => !earlier.has(key));
    for (const key of entry.order) earlier.add(key);
    if (!isNext || !entry.isReady || !isFree(entry)) {
      keep(entry);
      continue;
    }
    if (entry.share <= batch.length) break;
    batch.push(entry);
    size = Math.min(size, entry.share);
  }
  return batch;
}
