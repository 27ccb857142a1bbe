import type { Fleet } from '../../fleet/model/fleet.ts';
import { openOverlay } from '../../fleet/model/overlay.ts';
import type { Provider } from '../../fleet/model/provider.ts';
import { sharingIn } from '../../search/anchors.ts';
import type { Claim } from '../claim.ts';
import { canBePredicted, fitKey, type TakenAmount, wouldTake } from './would_take.ts';

/** A claim that waits for room. */
export type WaitingForRoom = {
  readonly claim: Claim;
  /** When the wait began, by `performance.now()`; claims with the same value are in the order of `index`. */
  readonly sinceMs: number;
  readonly index: number;
};

/** Whether a claim arrived before another one. */
export const isBefore = (
  a: Pick<WaitingForRoom, 'sinceMs' | 'index'>,
  b: Pick<WaitingForRoom, 'sinceMs' | 'index'>,
): boolean => a.sinceMs < b.sinceMs || (a.sinceMs === b.sinceMs && a.index < b.index);

/** Puts a claim into a list that is in the order of arrival. */
export function insertInOrder<Item extends Pick<WaitingForRoom, 'sinceMs' | 'index'>>(list: Item[], item: Item): void {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = list[middle];
    if (other !== undefined && isBefore(other, item)) low = middle + 1;
    else high = middle;
  }
  list.splice(low, 0, item);
}

/** Claims that fit on the same providers: if the first claim fits nowhere, no claim of the group fits. */
type Group<Item> = {
  readonly key: string;
  /** In the order of arrival. */
  readonly items: Item[];
  /** Whether the fleet alone decides if the claims fit. Otherwise the first claim is submitted after each change. */
  readonly isPredictable: boolean;
  /** All entries of `freed` before this index were checked. */
  checkedUpTo: number;
  /** Whether all trees must be checked. */
  mustCheckAllTrees: boolean;
  /** The group is not checked before this time, by `performance.now()`. */
  notBeforeMs: number;
  /** The number of changes of the fleet when its first claim was last submitted. */
  judgedAt: number;
};

/** The claims that wait for room, and what became free since they were checked. */
export type WaitingGroups<Item> = {
  /** How many claims wait for room. */
  readonly size: number;
  /** @param pauseMs how long the claim is not checked, since it was refused although it seemed to fit; then all trees are checked again */
  add(item: Item, pauseMs: number): void;
  /** Removes a claim, if it is there. */
  remove(item: Item): void;
  /** Whether a claim waits that fits on the same providers as this one. */
  hasAlike(claim: Claim): boolean;
  /** Whether an earlier claim waits that fits on the same providers as this one. */
  hasAlikeBefore(item: Item): boolean;
  /** Whether a claim was not checked since something changed that may let it fit. */
  isUnchecked(item: Item): boolean;
  /** Notes that providers may have more room, or with an empty list that something else has changed. */
  noteFreed(providerIds: readonly number[] | 'all'): void;
  /**
   * Takes the claims that fit now, in the order of arrival. Claims that were taken before and may not be written yet count as written.
   *
   * @param promised what the claims that were taken before take
   * @param mostMs for how long to check claims at most
   * @returns isDone false where the time was over before all claims were checked
   */
  take(
    fleet: Fleet,
    promised: Iterable<readonly TakenAmount[]>,
    mostMs: number,
  ): {
    readonly taken: readonly { readonly item: Item; readonly amounts: readonly TakenAmount[] }[];
    readonly isDone: boolean;
  };
};

/**
 * The time between two attempts to write a claim if the fleet alone does not decide whether the claim fits. If many such claims wait, the
 * time is longer: twice their number, in milliseconds.
 */
const tryEveryMs = 100;
/** With more entries all trees are checked instead. */
const mostFreed = 1000;

/** Starts without claims. */
export function openWaitingGroups<Item extends WaitingForRoom>(): WaitingGroups<Item> {
  const groups = new Map<string, Group<Item>>();
  const groupOf = new Map<Item, Group<Item>>();
  let freed: (readonly number[] | 'all')[] = [];
  let changes = 0;
  let unpredictable = 0;
  /** For claims that the fleet alone cannot judge: the number of changes when the claim was last submitted. */
  const judgedAtChange = new WeakMap<Item, number>();

  const needsCheck = (group: Group<Item>, nowMs: number): boolean => {
    if (nowMs < group.notBeforeMs) return false;
    if (!group.isPredictable) return group.judgedAt < changes;
    return group.mustCheckAllTrees || group.checkedUpTo < freed.length;
  };
  const forget = (group: Group<Item>, item: Item): void => {
    const index = group.items.indexOf(item);
    if (index !== -1) group.items.splice(index, 1);
    groupOf.delete(item);
    if (group.items.length > 0) return;
    groups.delete(group.key);
    if (!group.isPredictable) unpredictable -= 1;
    if (groups.size === 0) freed = [];
  };
  const collapse = (): void => {
    freed = [];
    for (const group of groups.values()) {
      group.checkedUpTo = 0;
      group.mustCheckAllTrees = true;
    }
  };

  /** All groups were checked, except those that pause: they must check all trees. */
  const dropCheckedChanges = (): void => {
    freed = [];
    for (const group of groups.values()) group.checkedUpTo = 0;
  };

  return {
    get size() {
      return groupOf.size;
    },
    add: (item, pauseMs) => {
      const isPredictable = canBePredicted(item.claim);
      const key = fitKey(item.claim) ?? `claim ${item.index}`;
      let group = groups.get(key);
      const nowMs = performance.now();
      if (group === undefined) {
        // A claim that was never submitted may have been judged before the last change.
        const judgedAt = judgedAtChange.get(item) ?? -1;
        group = {
          key,
          items: [],
          isPredictable,
          checkedUpTo: freed.length,
          mustCheckAllTrees: true,
          notBeforeMs: 0,
          judgedAt,
        };
        groups.set(key, group);
        if (!isPredictable) unpredictable += 1;
      }
      if (pauseMs > 0) group.mustCheckAllTrees = true;
      const leastMs = isPredictable ? pauseMs : Math.max(tryEveryMs, 2 * unpredictable);
      group.notBeforeMs = Math.max(group.notBeforeMs, nowMs + leastMs);
      insertInOrder(group.items, item);
      groupOf.set(item, group);
    },
    remove: (item) => {
      const group = groupOf.get(item);
      if (group !== undefined) forget(group, item);
    },
    hasAlike: (claim) => {
      const key = fitKey(claim);
      return key !== undefined && groups.has(key);
    },
    hasAlikeBefore: (item) => {
      const [first] = groups.get(fitKey(item.claim) ?? '')?.items ?? [];
      return first !== undefined && isBefore(first, item);
    },
    isUnchecked: (item) => {
      const group = groupOf.get(item);
      return group !== undefined && needsCheck(group, Number.POSITIVE_INFINITY);
    },
    noteFreed: (providerIds) => {
      changes += 1;
      if (groups.size === 0 || providerIds.length === 0) return;
      if (providerIds === 'all' || freed.length >= mostFreed) collapse();
      else freed.push(providerIds);
    },
    take: (fleet, promised, mostMs) => {
      const startedMs = performance.now();
      // The last group of the list is checked next.
      const toCheck: Group<Item>[] = [];
      for (const group of groups.values()) if (needsCheck(group, startedMs)) toCheck.push(group);
      if (toCheck.length === 0) return { taken: [], isDone: true };
      toCheck.sort((a, b) => (firstIsBefore(a, b) ? 1 : -1));
      const treesSince = treesFreedSince(fleet, freed);
      const taken: { item: Item; amounts: readonly TakenAmount[] }[] = [];
      const overlay = openOverlay(fleet);
      const show = (amounts: readonly TakenAmount[]): void =>
        overlay.add(
          amounts.flatMap(({ providerId, ...amount }) => {
            const provider = fleet.byId.get(providerId);
            return provider === undefined ? [] : [{ provider, ...amount }];
          }),
        );
      try {
        for (const amounts of promised) show(amounts);
        for (let group = toCheck.pop(); group !== undefined; group = toCheck.pop()) {
          const [item] = group.items;
          if (item === undefined) continue;
          if (performance.now() - startedMs > mostMs) return { taken, isDone: false };
          const only = group.mustCheckAllTrees ? undefined : treesSince(group.checkedUpTo);
          const amounts = group.isPredictable ? wouldTake(fleet, item.claim, only) : [];
          if (amounts === undefined || !group.isPredictable) {
            group.checkedUpTo = freed.length;
            group.mustCheckAllTrees = false;
            group.judgedAt = changes;
          }
          if (amounts === undefined) continue;
          show(amounts);
          if (!group.isPredictable) judgedAtChange.set(item, changes);
          taken.push({ item, amounts });
          forget(group, item);
          if (group.items.length > 0 && group.isPredictable) insertGroup(toCheck, group);
        }
      } finally {
        overlay.hide();
      }
      dropCheckedChanges();
      return { taken, isDone: true };
    },
  };
}

/** Whether the first claim of a group came before the first claim of another group. */
function firstIsBefore<Item extends WaitingForRoom>({ items: [a] }: Group<Item>, { items: [b] }: Group<Item>): boolean {
  return a !== undefined && b !== undefined && isBefore(a, b);
}

/** Inserts a group into a list that is sorted by first claims, the earliest at the end. */
function insertGroup<Item extends WaitingForRoom>(list: Group<Item>[], group: Group<Item>): void {
  let index = list.length;
  for (let before = list[index - 1]; before !== undefined && firstIsBefore(before, group); before = list[index - 1])
    index -= 1;
  list.splice(index, 0, group);
}

/** Returns the roots of the trees that may have more room by the entries of a list from an index on. */
function treesFreedSince(
  fleet: Fleet,
  freed: readonly (readonly number[] | 'all')[],
): (index: number) => ReadonlySet<Provider> {
  const known = new Map<number, ReadonlySet<Provider>>();
  const sharing = sharingIn(fleet);
  return (index) => {
    let roots = known.get(index);
    if (roots !== undefined) return roots;
    const found = new Set<Provider>();
    for (const id of freed.slice(index).flat()) {
      const provider = typeof id === 'number' ? fleet.byId.get(id) : undefined;
      if (provider === undefined) continue;
      found.add(provider.root);
      if (sharing.isSharing(provider)) for (const root of sharing.anchorsOf(provider)) found.add(root);
    }
    roots = found;
    known.set(index, roots);
    return roots;
  };
}
