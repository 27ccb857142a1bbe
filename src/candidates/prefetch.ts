import type { Provider } from '../fleet/provider.ts';

/**
 * How many hosts are read at once. A processor loads about ten cache lines at a time; with 8 hosts it takes a tenth
 * longer.
 */
const readAtOnce = 16;

/** Depends on all that was read, so that the compiler cannot leave out the reads. */
let seen = 0;

/**
 * The same anchors in the same order, most of which are in the processor's cache when the caller takes them. A
 * candidate needs about ten places in memory for each host, most of them found by following another one. If 100,000
 * hosts come in random order, these are in no cache, and the processor waits 0.1 us for each place, one after the
 * other. Here it loads the same place of several hosts at once. An answer with 100 candidates takes 0.25 ms instead of
 * 0.38 ms. With 1,000 hosts, which fit into the cache, nothing changes.
 */
export function* prefetched(anchors: Iterable<Provider>): Generator<Provider> {
  let ahead: Provider[] = [];
  for (const anchor of anchors) {
    ahead.push(anchor);
    if (ahead.length < readAtOnce) continue;
    read(ahead);
    for (const fetched of ahead) yield fetched;
    ahead = [];
  }
  for (const anchor of ahead) yield anchor;
}

/**
 * Reads what candidates need of these providers, in steps: each step reads, for all of them, what the step before
 * found.
 */
function read(providers: readonly Provider[]): void {
  let sum = 0;
  for (const { generation, rootPlace } of providers) sum += generation + rootPlace;
  for (const { inventories, tree, uuid } of providers) sum += inventories.length + tree.length + uuid.length;
  for (const { inventories, findings } of providers) {
    for (const { used } of inventories) sum += used;
    sum += findings?.summary?.length ?? 0;
  }
  for (const { findings } of providers) {
    const summary = findings?.summary;
    if (summary === undefined) continue;
    for (let place = 0; place < Math.min(summary.length, 512); place += 64) sum += summary[place] ?? 0;
  }
  seen = (seen + sum) | 0;
}
