import type { Provider } from './provider.ts';

/**
 * The snapshots of a fleet that are held for answers which are sent while they are computed. What such an answer has found in the
 * fleet stays as it was: before a tree that a held snapshot shows changes, the fleet replaces the tree by a copy (trees.ts), and only
 * the copy changes. While no snapshot is held, nothing is copied.
 */
export type HeldSnapshots = {
  /**
   * Holds the present snapshot: all providers of the fleet, and what can be reached from them, such as their trees, stay as they are.
   * The lists and sets of the fleet do not stay: what is needed of them must be copied now.
   *
   * @param providers how many providers the fleet has, so that no more can be kept for this snapshot
   * @param giveUp called if too much is kept for held snapshots: the holder must forget all that it has of the snapshot
   */
  hold(providers: number, giveUp: () => void): HeldSnapshot;
  /** Whether a held snapshot shows the tree of a root as it is now, so that it must not be changed. */
  shows(root: Provider): boolean;
  /**
   * Notes that the fleet has a copy instead of a tree that held snapshots show.
   *
   * @param root the root of the copy
   * @param copied how many providers the tree has
   * @param mostKept how many providers may be kept for all held snapshots together; if they are more, the oldest snapshots are given up
   */
  noteCopy(root: Provider, copied: number, mostKept: number): void;
  /** Notes that a new fleet was loaded. The former fleet does not change any more, and is kept for the held snapshots. */
  leaveFleet(providers: number): void;
  /** How many snapshots are held, and how many providers are kept for them at most. */
  readonly counts: { readonly held: number; readonly kept: number };
};

/** A snapshot that is held until its holder ends it, or has to give it up. */
export type HeldSnapshot = {
  /** It may be called more than once. */
  end(): void;
};

/** A snapshot. `kept` counts the providers that this snapshot shows, no newer snapshot shows, and the fleet does not have any more. */
type Held = { kept: number; readonly most: number; readonly giveUp: () => void };

/** No snapshot is held in the beginning. */
export function createHeldSnapshots(): HeldSnapshots {
  /** Oldest first. */
  const held: Held[] = [];
  /** The sum of all `kept`. */
  let kept = 0;
  /** How many of them, the newest ones, are of the present fleet. */
  let ofFleet = 0;
  /** The roots of trees that were copied since the newest snapshot: no held snapshot shows them. */
  let copied = new WeakSet<Provider>();

  const keepFor = (snapshot: Held | undefined, providers: number): void => {
    if (snapshot === undefined) return;
    const more = Math.min(providers, snapshot.most - snapshot.kept);
    snapshot.kept += more;
    kept += more;
  };
  const drop = (snapshot: Held): void => {
    const index = held.indexOf(snapshot);
    if (index === -1) return;
    if (index >= held.length - ofFleet) ofFleet -= 1;
    held.splice(index, 1);
    kept -= snapshot.kept;
    // The next older snapshot may show the same providers.
    keepFor(held[index - 1], snapshot.kept);
  };

  return {
    hold: (providers, giveUp) => {
      const snapshot = { kept: 0, most: providers, giveUp };
      held.push(snapshot);
      ofFleet += 1;
      copied = new WeakSet();
      return { end: () => drop(snapshot) };
    },
    shows: (root) => ofFleet > 0 && !copied.has(root),
    noteCopy: (root, providers, mostKept) => {
      copied.add(root);
      keepFor(held.at(-1), providers);
      // Oldest first, since an older snapshot may show what is counted for a newer one.
      for (let [oldest] = held; oldest !== undefined && kept > mostKept; [oldest] = held) {
        drop(oldest);
        oldest.giveUp();
      }
    },
    leaveFleet: (providers) => {
      if (ofFleet > 0) keepFor(held.at(-1), providers);
      ofFleet = 0;
    },
    get counts() {
      return { held: held.length, kept };
    },
  };
}
