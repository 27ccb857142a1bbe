import { Cache } from '../../text/cache.ts';
import { type Block, doubt, firstFailing, sortSlots } from './postings.ts';
import { freeOf, nowhere, type Provider, type Slots, treeOf } from './provider.ts';
import type { Demand } from './tree_room.ts';

/** Roots whose trees are equal by all keys. */
export type TreeRun = {
  readonly length: number;
  /** @param number from 0 to below `length` */
  at(number: number): Provider | undefined;
};

/** All trees in the order of some keys. Trees with equal values are in the order of `fleet.roots`. */
export type TreeOrder = {
  /**
   * The roots in order: a run for each combination of values. Trees that cannot meet the demands may be left out; large
   * numbers of such trees are skipped at once. Use no run after an `await`.
   */
  runs(demands: readonly Demand[]): Generator<TreeRun>;
  /** Negative where the tree of the first root comes before that of the second; never 0. */
  compare(one: Provider, other: Provider): number;
  /** Whether the trees of two roots have equal values. */
  areEqual(one: Provider, other: Provider): boolean;
};

/** A `TreeOrder`, and the functions by which changes are noted in it. */
type LivingTreeOrder = TreeOrder & {
  /**
   * Notes that the tree of a root may have changed, or that a provider became a root or is no root any more.
   *
   * @returns false once so many changes were noted that sorting all trees again is faster
   */
  note(provider: Provider): boolean;
  /** Applies the noted changes. */
  bringUpToDate(): void;
};

/** An order is dropped only after more changes than this; in a large fleet after more than a quarter of its trees. */
const fewChanges = 64;

/** Orders all trees. The order takes 8 bytes for each root and key, and about 16 more for each root. */
function orderTrees(
  keys: readonly TreeKey[],
  roots: readonly Provider[],
  { providers }: Pick<Slots, 'providers'>,
): LivingTreeOrder {
  /** By slot of the root, the values by which its tree is ordered: the values of the keys, then its index among the roots. */
  const values = [...keys, undefined].map(() => new Float64Array(providers.length).fill(nowhere));
  /** By slot, since a provider may be replaced by a copy. */
  const dirty = new Set<number>();

  const compareUpTo = (one: number, other: number, count: number): number => {
    for (let number = 0; number < count; number++) {
      const column = values[number];
      const difference = (column?.[one] ?? 0) - (column?.[other] ?? 0);
      if (difference !== 0) return difference;
    }
    return 0;
  };
  const write = (number: number, slot: number, value: number): void => {
    const column = values[number];
    if (column === undefined) return;
    if (slot < column.length) {
      column[slot] = value;
      return;
    }
    const longer = new Float64Array(Math.max(slot + 1, 2 * column.length)).fill(nowhere);
    longer.set(column);
    longer[slot] = value;
    values[number] = longer;
  };
  const readTree = (root: Provider): void => {
    for (const [number, key] of keys.entries()) write(number, root.slot, keyValue(key, treeOf(root)));
    write(keys.length, root.slot, root.rootIndex);
  };
  const isListed = (slot: number): boolean => (values[keys.length]?.[slot] ?? nowhere) !== nowhere;
  const unlist = (slot: number): void => {
    if (!isListed(slot)) return;
    sorted.remove(slot);
    write(keys.length, slot, nowhere);
  };

  for (const root of roots) readTree(root);
  const sorted = sortSlots(
    roots.map(({ slot }) => slot),
    (one, other) => compareUpTo(one, other, keys.length + 1),
  );

  /** Whether one provider of the trees of a block may have the free amounts that a single provider must have. */
  const mayMeet = (block: Block, demands: readonly Demand[]): boolean => {
    for (const { classId, ofOne } of demands) {
      if (block.mostFree === undefined) {
        block.mostFree = new Map();
        block.doubts = 0;
      }
      let most = block.mostFree.get(classId);
      if (most === undefined) {
        most = 0;
        for (const slot of block.slots) {
          const root = providers[slot];
          if (root !== undefined) most = Math.max(most, mostOfOne(treeOf(root), classId));
        }
        block.mostFree.set(classId, most);
      }
      if (most < ofOne) return false;
    }
    if (block.doubts > 0) doubt(block);
    return true;
  };

  /** By index of the key: the values between which trees may meet the demands. */
  const boundsOf = (demands: readonly Demand[]): readonly Bounds[] =>
    keys.map((key) => {
      const total = key.kind === 'free' ? demands.find(({ classId }) => classId === key.classId)?.total : undefined;
      if (key.kind !== 'free' || total === undefined) return { least: -Infinity, most: Infinity };
      return key.mostFirst ? { least: -Infinity, most: -total } : { least: total, most: Infinity };
    });

  return {
    compare: (one, other) => compareUpTo(one.slot, other.slot, keys.length + 1),
    areEqual: (one, other) => compareUpTo(one.slot, other.slot, keys.length) === 0,
    note: ({ slot }) => {
      dirty.add(slot);
      return dirty.size <= Math.max(fewChanges, roots.length / 4);
    },
    bringUpToDate: () => {
      // All are removed before one is added: a root that got the index of a removed root would compare as equal to it.
      for (const slot of dirty) unlist(slot);
      for (const slot of dirty) {
        const provider = providers[slot];
        if (provider === undefined || provider.rootIndex === nowhere) continue;
        readTree(provider);
        raiseMostFree(sorted.add(slot), treeOf(provider));
      }
      dirty.clear();
    },
    *runs(demands) {
      const { blocks } = sorted;
      const bounds = boundsOf(demands);
      let block = 0;
      let index = 0;
      for (;;) {
        const first = blocks[block]?.slots[index];
        if (first === undefined) {
          if (block >= blocks.length) return;
          block += 1;
          index = 0;
          continue;
        }
        const beyond = bounds.findIndex(({ least, most }, number) => {
          const value = values[number]?.[first] ?? 0;
          return value < least || value > most;
        });
        if (beyond !== -1) {
          // If the value is too small, continue at the first tree with a sufficient value. If it is too large, continue behind all
          // trees that are equal up to the key before.
          const column = values[beyond];
          const { least = 0 } = bounds[beyond] ?? {};
          const isTooLittle = (column?.[first] ?? 0) < least;
          ({ block, index } = sorted.find((slot) => {
            const difference = compareUpTo(slot, first, beyond);
            return difference < 0 || (difference === 0 && (!isTooLittle || (column?.[slot] ?? 0) < least));
          }));
          continue;
        }
        const isAlike = (slot: number | undefined): boolean =>
          slot !== undefined && compareUpTo(slot, first, keys.length) === 0;
        const pieces: OrderPiece[] = [];
        let length = 0;
        for (let present = blocks[block]; present !== undefined; present = blocks[block]) {
          const { slots } = present;
          const start = index;
          const end = isAlike(slots.at(-1))
            ? slots.length
            : start + firstFailing(slots.length - start, (further) => isAlike(slots[start + further]));
          if (end > start && mayMeet(present, demands)) {
            pieces.push({ before: length, slots, start });
            length += end - start;
          }
          index = end;
          if (end < slots.length) break;
          block += 1;
          index = 0;
        }
        if (length > 0) yield { length, at: (number) => providers[slotAt(pieces, number)] };
      }
    },
  };
}

/** The most that one provider of a tree has free. */
function mostOfOne(tree: readonly Provider[], classId: number): number {
  let most = 0;
  for (const provider of tree) most = Math.max(most, leftOf(provider, classId));
  return most;
}

/** Notes that a tree was added to a block. */
function raiseMostFree({ mostFree }: Block, tree: readonly Provider[]): void {
  if (mostFree === undefined) return;
  for (const [classId, most] of mostFree) mostFree.set(classId, Math.max(most, mostOfOne(tree, classId)));
}

/** Successive slots of a run in a block: the index of the first one, and how many slots of the run come before it. */
type OrderPiece = { readonly before: number; readonly slots: readonly number[]; readonly start: number };

/** The slot at an index of a run. */
function slotAt(pieces: readonly OrderPiece[], number: number): number {
  const piece =
    pieces[pieces.length === 1 ? 0 : firstFailing(pieces.length, (n) => (pieces[n]?.before ?? 0) <= number) - 1];
  return piece?.slots[piece.start + number - piece.before] ?? nowhere;
}

/** The values of a key between which trees may meet the demands. */
type Bounds = { readonly least: number; readonly most: number };

/**
 * Orders of the trees of a fleet. An order is made when it is first used, and then follows the fleet. An order is dropped
 * when many other orders are used, or when a quarter of the trees has changed since its last use.
 */
export type TreeOrders = {
  /** The trees in the order of some keys, as they are now. */
  of(keys: readonly TreeKey[]): TreeOrder;
  /** How many orders were made so far. */
  readonly made: number;
  /** Notes that the tree of a root may have changed, or that a provider became a root or is one no more. */
  note(provider: Provider): void;
};

/** The largest number of cached orders. */
const mostOrders = 8;

/** @param roots the roots of the fleet, which change with it */
export function createTreeOrders(roots: readonly Provider[], slots: Slots): TreeOrders {
  /** The orders that were used last. */
  const cached = new Cache<string, LivingTreeOrder>(mostOrders);
  let made = 0;
  const make = (keys: readonly TreeKey[]): LivingTreeOrder => {
    made += 1;
    return orderTrees(keys, roots, slots);
  };
  return {
    get made() {
      return made;
    },
    of: (keys) => {
      const name = JSON.stringify(keys);
      const order = cached.get(name) ?? make(keys);
      cached.set(name, order);
      order.bringUpToDate();
      return order;
    },
    note: (provider) => {
      if (cached.size === 0) return;
      for (const [name, order] of cached) if (!order.note(provider)) cached.delete(name);
    },
  };
}

/** The key by which trees, and the providers of a tree, are ordered: smaller values come first. */
export type TreeKey =
  | { readonly kind: 'free'; readonly classId: number; readonly mostFirst: boolean }
  | { readonly kind: 'prefer'; readonly traitId: number };

/** How much of a class a provider can still give: 0 where the provider has no such inventory, or is overcommitted. */
const leftOf = (provider: Provider, classId: number): number => Math.max(0, freeOf(provider, classId) ?? 0);

/**
 * The value of a key for some providers together. For a class it is the sum of what they can give, as a negative number
 * if the most comes first. For a trait it is 0 if one of them has it, else 1.
 */
export function keyValue(key: TreeKey, providers: readonly Provider[]): number {
  if (key.kind === 'prefer') return providers.some(({ traitIds }) => traitIds.includes(key.traitId)) ? 0 : 1;
  let left = 0;
  for (const provider of providers) left += leftOf(provider, key.classId);
  return key.mostFirst ? -left : left;
}
