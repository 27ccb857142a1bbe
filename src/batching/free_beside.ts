import type { BatchOptions } from './batch_options.ts';
import type { LockedKeys } from './locked_keys.ts';
import { isUnderWay, type Queued, type Suspicion } from './queued.ts';

/** An item, and what it needs. */
type Needing<Item> = Pick<Queued<Item, unknown>, 'item' | 'order' | 'state'>;

/** What is done beside the next batch, or before it. */
type Others<Item> = {
  /** The suspicion of the items of the next batch. */
  readonly suspicion: Suspicion;
  readonly long: Iterable<readonly Needing<Item>[]>;
  readonly parts: Iterable<readonly Needing<Item>[]>;
  readonly slow: Iterable<Needing<Item>>;
  /** A batch that will have ended by then: only the order of items with a common key matters. */
  readonly before: readonly Needing<Item>[];
};

/** Returns a check whether an item needs nothing that is locked or in use now. */
export function freeBeside<Item>(
  {
    locked,
    sharedLock,
    locksOf,
  }: Required<Pick<BatchOptions<Item>, 'locksOf' | 'sharedLock'>> & {
    readonly locked: LockedKeys<Item>;
  },
  { suspicion, long, parts, slow, before }: Others<Item>,
): (item: Needing<Item>) => boolean {
  const slowest = [...long].flat().filter(isUnderWay);
  const tried = [...parts].flat();
  const others = [...slowest, ...tried, ...slow, ...before];
  if (!locked.areAny() && others.length === 0) return () => true;
  const inUse = new Set(others.flatMap(({ order }) => order));
  // If two suspected items lock the same, the one that gets the lock and waits for another would make the other fail.
  const lockedByUs = new Set(
    (suspicion === 'none' ? slowest : [...slowest, ...tried]).flatMap(({ item }) => locksOf(item)),
  );
  return ({ order, item }) =>
    !locked.has(sharedLock) &&
    order.every((key) => !inUse.has(key) && !locked.has(key)) &&
    locksOf(item).every((key) => !lockedByUs.has(key) && !locked.has(key));
}
