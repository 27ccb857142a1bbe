import { exactCapacity, maxInteger } from '../placement/inventory.ts';
import { nowhere } from './places.ts';
import { inventoryOf, type Provider } from './provider.ts';

/** What a tree must have free of a class to be of any use. */
export type Demand = {
  readonly classId: number;
  /** So much all its providers together. */
  readonly total: number;
  /** So much one of its providers. */
  readonly ofOne: number;
};

/**
 * How much each tree has room for, by class, in lists of numbers. To read them for a million trees takes about a millisecond; to
 * look at the providers takes a tenth of a second and more, since most are in no cache of the processor. A list is made when it is
 * first asked for, and then follows the fleet.
 */
export type TreeRoom = {
  /**
   * The roots of all trees that have room for the demands, as they are now.
   *
   * @returns undefined where these are more than `most`
   */
  meeting(demands: readonly Demand[], most: number): readonly Provider[] | undefined;
  /** How many lists were made so far. */
  readonly made: number;
  /** Notes that another tree is at an index of the roots, or may be, or that the tree there may have changed. */
  note(rootPlace: number): void;
  /** Takes in what was noted if it is much, so that the next query finds little to do. Only while trees and roots agree. */
  settle(): void;
};

/** How much room trees have for a class. */
type RoomList = {
  readonly classId: number;
  /** Whether for all providers of a tree together; otherwise for one allocation from one of them. */
  readonly together: boolean;
  /** By index of the root. */
  room: Int32Array;
  /** The largest of each block of `room`, or `unknown`. */
  mostOf: Int32Array;
};

/** A list, and what it must have for a tree. */
type Need = Pick<RoomList, 'room' | 'mostOf'> & { readonly least: number };

/** So many lists are kept. */
const mostLists = 16;

/** So many changes wait for a query. */
const fewChanges = 1024;

/** So many trees are passed at once where none of them has room. */
const inBlock = 1024;

/** @param roots the roots of the fleet, which change with it */
export function createTreeRoom(roots: readonly Provider[]): TreeRoom {
  /** The one that was asked for last is the last. */
  const kept = new Map<string, RoomList>();
  let made = 0;
  /** Indexes at which the lists may be wrong. */
  const stale = new Set<number>();

  const bringUpToDate = (): void => {
    for (const list of kept.values()) growTo(list, roots.length);
    for (const place of stale) {
      const tree = roots[place]?.tree ?? none;
      for (const list of kept.values()) write(list, place, roomIn(tree, list));
    }
    stale.clear();
  };

  const listOf = (classId: number, together: boolean): RoomList => {
    const name = `${classId} ${together}`;
    let list = kept.get(name);
    if (list === undefined) {
      made += 1;
      for (const oldest of kept.keys()) if (kept.size >= mostLists) kept.delete(oldest);
      list = { classId, together, room: new Int32Array(), mostOf: new Int32Array() };
      growTo(list, roots.length);
      for (const [place, root] of roots.entries()) write(list, place, roomIn(root.tree, list));
    }
    kept.delete(name);
    kept.set(name, list);
    return list;
  };

  return {
    get made() {
      return made;
    },
    meeting: (demands, most) => {
      bringUpToDate();
      const needs = demands.flatMap(({ classId, total, ofOne }): Need[] => [
        { ...listOf(classId, false), least: ofOne },
        ...(total > ofOne ? [{ ...listOf(classId, true), least: Math.min(total, maxInteger) }] : []),
      ]);
      if (needs.length === 0) return undefined;
      const found: Provider[] = [];
      for (let block = 0; block * inBlock < roots.length; block++) {
        if (!needs.every((need) => mostIn(need, block) >= need.least)) continue;
        for (const place of placesIn(block, needs)) {
          const root = roots[place];
          if (root === undefined) continue;
          if (found.length >= most) return undefined;
          found.push(root);
        }
      }
      return found;
    },
    note: (rootPlace) => {
      if (kept.size === 0 || rootPlace === nowhere) return;
      stale.add(rootPlace);
      if (stale.size <= Math.max(fewChanges, roots.length / 4)) return;
      // To make the lists anew takes less time.
      kept.clear();
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

function write({ room, mostOf }: RoomList, place: number, value: number): void {
  const block = Math.floor(place / inBlock);
  const most = mostOf[block] ?? 0;
  const former = room[place] ?? 0;
  room[place] = value;
  if (value >= most) mostOf[block] = value;
  else if (former === most) mostOf[block] = unknown;
}

/** Stands for the largest of a block where that got less. It is found out when it is needed: most trees of a block may be alike. */
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
function placesIn(block: number, needs: readonly Need[]): readonly number[] {
  let places: number[] | undefined;
  for (const { room, least } of needs) {
    const enough: number[] = [];
    if (places === undefined) {
      const end = Math.min(room.length, (block + 1) * inBlock);
      for (let place = block * inBlock; place < end; place++) if ((room[place] ?? 0) >= least) enough.push(place);
    } else {
      for (const place of places) if ((room[place] ?? 0) >= least) enough.push(place);
    }
    places = enough;
  }
  return places ?? none;
}

/** How much the providers of a tree have room for: one of them, or all together, but no more than an integer column takes. */
function roomIn(tree: readonly Provider[], { classId, together }: Pick<RoomList, 'classId' | 'together'>): number {
  let room = 0;
  for (const provider of tree) {
    const ofOne = roomOf(provider, classId);
    room = together ? Math.min(room + ofOne, maxInteger) : Math.max(room, ofOne);
  }
  return room;
}

/** The largest amount of a class that fits into a provider, if any amount fits: `hasRoomFor` holds for none above it. */
function roomOf(provider: Provider, classId: number): number {
  const inventory = inventoryOf(provider, classId);
  if (inventory === undefined) return 0;
  const { fields, used } = inventory;
  const capacity = exactCapacity(fields);
  // Beyond the safe integers a sum is rounded, so that a difference says nothing.
  const free = capacity > Number.MAX_SAFE_INTEGER ? maxInteger : Math.floor(capacity) - used;
  return Math.max(0, Math.min(free, fields.maxUnit, maxInteger));
}
