/** Places of providers in an order, in blocks, so that adding and removing one moves few others. */
export type SortedPlaces = {
  readonly blocks: readonly Block[];
  /** The first place that is not before what is looked for; behind the last block where all are. */
  find(isBefore: (place: number) => boolean): Position;
  /** @returns the block that has it now, whose `mostFree` leaves it out */
  add(place: number): Block;
  /** Removes a place, which must compare as it did when it was added. @returns whether it was there */
  remove(place: number): boolean;
};

/** Some places that follow each other in the order; at least one. */
export type Block = {
  readonly places: readonly number[];
  /** By class id, what a single provider of these trees has free at most. It may be too much if there are doubts. */
  mostFree: Map<number, number> | undefined;
  /** How often a place was removed since, and how often `mostFree` was relied on after that. */
  doubts: number;
};

/** The number of a block, and an index in it. */
type Position = { readonly block: number; readonly index: number };

/** At this number of doubts `mostFree` is computed anew: that takes as long as adding and removing some ten places. */
const mostDoubts = 16;

/** Counts one doubt more. */
export function doubt(block: Block): void {
  block.doubts += 1;
  if (block.doubts < mostDoubts) return;
  block.mostFree = undefined;
  block.doubts = 0;
}

type OwnBlock = Block & { readonly places: number[] };

const newBlock = (places: number[]): OwnBlock => ({ places, mostFree: undefined, doubts: 0 });

/** The largest number of places in a block. */
const mostInBlock = 128;

/** @param compare an order in which no two places are equal */
export function sortPlaces(places: readonly number[], compare: (one: number, other: number) => number): SortedPlaces {
  const sorted = places.toSorted(compare);
  const blocks: OwnBlock[] = [];
  // Half full, so that there is room.
  for (let start = 0; start < sorted.length; start += mostInBlock / 2) {
    blocks.push(newBlock(sorted.slice(start, start + mostInBlock / 2)));
  }
  const find = (isBefore: (place: number) => boolean): Position => {
    const block = firstFailing(blocks.length, (number) => isBefore(blocks[number]?.places.at(-1) ?? 0));
    const { places = none } = blocks[block] ?? {};
    return { block, index: firstFailing(places.length, (index) => isBefore(places[index] ?? 0)) };
  };
  return {
    blocks,
    find,
    add: (place) => {
      const found = find((other) => compare(other, place) < 0);
      // What comes behind all others goes to the end of the last block.
      const number = Math.min(found.block, Math.max(0, blocks.length - 1));
      const block = blocks[number];
      if (block === undefined) {
        const only = newBlock([place]);
        blocks.push(only);
        return only;
      }
      block.places.splice(number === found.block ? found.index : block.places.length, 0, place);
      if (block.places.length <= mostInBlock) return block;
      block.mostFree = undefined;
      blocks.splice(number + 1, 0, newBlock(block.places.splice(mostInBlock / 2)));
      return block;
    },
    remove: (place) => {
      const { block: number, index } = find((other) => compare(other, place) < 0);
      const block = blocks[number];
      if (block?.places[index] !== place) return false;
      block.places.splice(index, 1);
      doubt(block);
      if (block.places.length === 0) blocks.splice(number, 1);
      return true;
    },
  };
}

const none: readonly never[] = [];

/**
 * The first number from 0 on that fails a test, by binary search; `length` if none fails. After that number the test must
 * fail for all.
 */
export function firstFailing(length: number, holds: (number: number) => boolean): number {
  let first = 0;
  let last = length;
  while (first < last) {
    const middle = (first + last) >>> 1;
    if (holds(middle)) first = middle + 1;
    else last = middle;
  }
  return first;
}
