import { maxInteger, usableOf } from '../../placement/inventory.ts';
import { Cache } from '../../text/cache.ts';
import { inventoryOf, nowhere, type Provider, treeOf } from './provider.ts';

/** What a tree must have free of a class so that a request can fit. */
export type Demand = {
  readonly classId: number;
  /** All its providers together. */
  readonly total: number;
  /** At least one of its providers. */
  readonly ofOne: number;
};

/**
 * How much room each tree has, by class, in lists of numbers. To read the lists for a million trees takes about a
 * millisecond. To read the providers takes a tenth of a second or more, since most of their data is in no cache of
 * the processor. A list is made when it is first used, and then follows the fleet.
 */
export type TreeRoom = {
  /**
   * The roots of all trees that have room for the demands, as they are now.
   *
   * @returns undefined if more than `most` trees have room, or if there are no demands
   */
  meeting(demands: readonly Demand[], most: number): readonly Provider[] | undefined;
  /** How many lists were made so far. */
  readonly made: number;
  /** Notes that another tree may be at an index of the roots, or that the tree there may have changed. */
  note(rootIndex: number): void;
  /** Applies the noted changes if they are many, so that the next query need not do that. Call it only while trees and roots agree. */
  settle(): void;
};

/** How much room trees have for a class. */
type RoomList = {
  readonly classId: number;
  /** Whether the room is the sum over all providers of a tree; otherwise it is the largest allocation that one of them can give. */
  readonly together: boolean;
  /** By index of the root. */
  room: Int32Array;
  /** The largest of each block of `room`, or `unknown`. */
  mostOf: Int32Array;
};

/** A list, and the room that a tree must have in it. */
type Need = Pick<RoomList, 'room' | 'mostOf'> & { readonly least: number };

/** The largest number of cached lists. */
const mostLists = 16;

/** `settle` leaves this number of changes to the next query. */
const fewChanges = 1024;

/** The number of trees in a block, which is skipped as a whole if none of them has room. */
const inBlock = 1024;

/** @param roots the roots of the fleet, which change with it */
export function createTreeRoom(roots: readonly Provider[]): TreeRoom {
  /** The lists that were used last. */
  const cached = new Cache<string, RoomList>(mostLists);
  let made = 0;
  /** Indexes at which the lists may be wrong. */
  const stale = new Set<number>();

  const bringUpToDate = (): void => {
    for (const list of cached.values()) growTo(list, roots.length);
    for (const index of stale) {
      const root = roots[index];
      const tree = root === undefined ? none : treeOf(root);
      for (const list of cached.values()) write(list, index, roomIn(tree, list));
    }
    stale.clear();
  };

  const listOf = (classId: number, together: boolean): RoomList => {
    const name = `${classId} ${together}`;
    let list = cached.get(name);
    if (list === undefined) {
      made += 1;
      list = { classId, together, room: new Int32Array(), mostOf: new Int32Array() };
      growTo(list, roots.length);
      for (const [index, root] of roots.entries()) write(list, index, roomIn(treeOf(root), list));
    }
    cached.set(name, list);
    return list;
  };

  return {
    get made() {
      return made;
    },
    meeting: (demands, most) => {
      bringUpToDate();
      // With more lists than the cache holds, each query would make them again. Fewer demands only find more trees.
      const needs = demands
        .slice(0, mostLists / 2)
        .flatMap(({ classId, total, ofOne }): Need[] => [
          { ...listOf(classId, false), least: ofOne },
          ...(total > ofOne ? [{ ...listOf(classId, true), least: Math.min(total, maxInteger) }] : []),
        ]);
      if (needs.length === 0) return undefined;
      const found: Provider[] = [];
      for (let block = 0; block * inBlock < roots.length; block++) {
        if (!needs.every((need) => mostIn(need, block) >= need.least)) continue;
        for (const index of indexesIn(block, needs)) {
          const root = roots[index];
          if (root === undefined) continue;
          if (found.length >= most) return undefined;
          found.push(root);
        }
      }
      return found;
    },
    note: (rootIndex) => {
      if (cached.size === 0 || rootIndex === nowhere) return;
      stale.add(rootIndex);
      if (stale.size <= Math.max(fewChanges, roots.length / 4)) return;
      // Making the lists again takes less time.
      cached.clear();
      stale.clear();
    },
    settle: () => {
      if (stale.size > fewChanges) bringUpToDate();
    },
  };
}

const none: readonly never[] = [];

/** Makes a list long enough for a number of roots. */
function growTo(list: RoomList, length: number): void {
  if (list.room.length >= length) return;
  const blocks = Math.ceil((length + length / 8) / inBlock);
  const { room, mostOf } = list;
  list.room = new Int32Array(blocks * inBlock);
  list.mostOf = new Int32Array(blocks);
  list.room.set(room);
  list.mostOf.set(mostOf);
}

function write({ room, mostOf }: RoomList, index: number, value: number): void {
  const block = Math.floor(index / inBlock);
  const most = mostOf[block] ?? 0;
  const former = room[index] ?? 0;
  room[index] = value;
  if (value >= most) mostOf[block] = value;
  else if (former === most) mostOf[block] = unknown;
}

/** Marks a block whose largest value became smaller. The new largest value is computed when it is first needed. */
const unknown = maxInteger;

function mostIn({ room, mostOf }: Need, block: number): number {
  const known = mostOf[block] ?? 0;
  if (known !== unknown) return known;
  let most = 0;
  for (const one of room.subarray(block * inBlock, (block + 1) * inBlock)) most = Math.max(most, one);
  mostOf[block] = most;
  return most;
}

/** The indexes of a block at which all lists have enough. */
function indexesIn(block: number, needs: readonly Need[]): readonly number[] {
  let indexes: number[] | undefined;
  for (const { room, least } of needs) {
    const enough: number[] = [];
    if (indexes === undefined) {
      const end = Math.min(room.length, (block + 1) * inBlock);
      for (let index = block * inBlock; index < end; index++) if ((room[index] ?? 0) >= least) enough.push(index);
    } else {
      for (const index of indexes) if ((room[index] ?? 0) >= least) enough.push(index);
    }
    indexes = enough;
  }
  return indexes ?? none;
}

/** How much room the providers of a tree have, one of them or all together; at most what an integer column can hold. */
function roomIn(tree: readonly Provider[], { classId, together }: Pick<RoomList, 'classId' | 'together'>): number {
  let room = 0;
  for (const provider of tree) {
    const ofOne = roomOf(provider, classId);
    room = together ? Math.min(room + ofOne, maxInteger) : Math.max(room, ofOne);
  }
  return room;
}

/** An amount of a class above which `hasRoomFor` is false for each amount. A smaller amount may not fit either. */
function roomOf(provider: Provider, classId: number): number {
  const inventory = inventoryOf(provider, classId);
  if (inventory === undefined) return 0;
  const { fields, used } = inventory;
  const usable = usableOf(fields);
  // Beyond the safe integers a sum is rounded, and a difference would be wrong.
  const free = usable > Number.MAX_SAFE_INTEGER ? maxInteger : Math.floor(usable) - used;
  return Math.max(0, Math.min(free, fields.maxUnit, maxInteger));
}
