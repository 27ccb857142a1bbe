import type { Database } from '../../db/engine/connect.ts';
import type { BatchOptions, Queued } from './items.ts';

/** An item, and the keys that its order depends on. */
type Needing<Item> = Pick<Queued<Item, unknown>, 'item' | 'order'>;

/** The keys that other programs hold in the database, as far as this queue has met them. */
export type LockedKeys<Item> = {
  has(key: string): boolean;
  areAny(): boolean;
  /** Asks the database which keys that these items need are locked. An error means that none was found. */
  find(items: readonly Needing<Item>[]): Promise<readonly string[]>;
  /**
   * Takes a key as locked until the slow lane got its lock, so that the items that need it stay in the queue.
   *
   * @param refusal the error by which the lock was refused
   */
  waitFor(key: string, refusal: unknown): void;
  /** Does so if the database says that the key, which these items need, is locked. */
  waitIfLocked(key: string, items: readonly Needing<Item>[], refusal: () => unknown): Promise<void>;
};

/**
 * Starts without a locked key.
 *
 * @param queue.isWanted whether an item still needs a key; otherwise the slow lane need not wait for it
 * @param queue.onFree called when the wait for a key is over, also after an error: then the items are tried again, and
 *   each fails or succeeds by itself
 */
export function openLockedKeys<Item>(
  slowLane: Database['slowLane'],
  { findLocked, awaitLock }: Pick<BatchOptions<Item>, 'findLocked' | 'awaitLock'>,
  queue: {
    needsOf(needing: Needing<Item>): readonly string[];
    isWanted(key: string): boolean;
    onFree(): void;
  },
): LockedKeys<Item> {
  const locked = new Set<string>();
  const find: LockedKeys<Item>['find'] = async (items) => {
    if (findLocked === undefined) return [];
    const needed = new Set(items.flatMap((needing) => queue.needsOf(needing)));
    const found = await findLocked(items.map(({ item }) => item)).catch(() => []);
    return found.filter((key) => needed.has(key));
  };
  const waitFor: LockedKeys<Item>['waitFor'] = (key, refusal) => {
    if (locked.has(key) || awaitLock === undefined) return;
    locked.add(key);
    const end = (): void => {
      locked.delete(key);
      queue.onFree();
    };
    const isWanted = (): boolean => queue.isWanted(key);
    slowLane.attempt((wait) => awaitLock(key, wait), { holdsOthers: false, isWanted, refusal }).then(end, end);
  };
  return {
    has: (key) => locked.has(key),
    areAny: () => locked.size > 0,
    find,
    waitFor,
    waitIfLocked: async (key, items, refusal) => {
      if ((await find(items)).includes(key)) waitFor(key, refusal());
    },
  };
}
