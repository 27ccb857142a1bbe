import type { Provider } from './provider.ts';

/**
 * Snapshots of a fleet that are held for long answers, which are sent while they are computed. Such an answer sees one state of the
 * fleet: before a tree that a held snapshot shows changes, the fleet replaces the tree by a copy (trees.ts), and only the copy
 * changes. While no snapshot is held, nothing is copied.
 */
export type HeldSnapshots = {
  /**
   * Holds the present snapshot: all providers of the fleet, and all objects that can be reached from them, such as their trees, stay
   * unchanged. The lists and sets of the fleet change: the holder must copy what it needs of them now.
   *
   * @param providers how many providers the fleet has: the snapshot keeps no more than these
   * @param giveUp called if held snapshots keep too many providers: the holder must release all references to the snapshot
   */
  hold(providers: number, giveUp: () => void): HeldSnapshot;
  /** Whether a held snapshot shows the tree of a root as it is now, so that it must not be changed. */
  shows(root: Provider): boolean;
  /**
   * Notes that the fleet has a copy instead of a tree that held snapshots show.
   *
   * @param root the root of the copy
   * @param copied how many providers the tree has
   * @param mostProviders how many copied providers all held snapshots together may keep; beyond that the oldest snapshots are released
   */
  noteCopy(root: Provider, copied: number, mostProviders: number): void;
  /** Notes that a new fleet was loaded. The former fleet does not change any more, and is kept for the held snapshots. */
  leaveFleet(providers: number): void;
  /** How many snapshots are held, and how many providers are kept for them at most. */
  readonly counts: { readonly held: number; readonly kept: number };
};

/** A snapshot that is held until its holder ends it, or must release it. */
export type HeldSnapshot = {
  /** It may be called more than once. */
  end(): void;
};

/** A snapshot. `kept` counts providers that this snapshot shows, that no newer snapshot shows, and that the fleet has replaced. */
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
    noteCopy: (root, providers, mostProviders) => {
      copied.add(root);
      keepFor(held.at(-1), providers);
      // Oldest first, since an older snapshot may also show providers that are counted for a newer one.
      for (let [oldest] = held; oldest !== undefined && kept > mostProviders; [oldest] = held) {
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
