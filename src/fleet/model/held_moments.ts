import type { Provider } from './provider.ts';

/**
 * The moments of a fleet that are held for answers which are sent while they are computed. What such an answer has found in the
 * fleet stays as it was: before a tree changes that a held moment shows, the fleet replaces it by a copy (trees.ts), and only
 * the copy changes. As long as no moment is held, nothing is copied.
 */
export type HeldMoments = {
  /**
   * Holds the present moment: all providers of the fleet, and what can be reached from them, such as their trees, stay as they are.
   * The lists and sets of the fleet do not: what is needed of them must be copied now.
   *
   * @param providers how many providers the fleet has, so that no more can be kept for this moment
   * @param giveUp called if too much is kept for held moments: the holder must forget all that it has of the moment
   */
  hold(providers: number, giveUp: () => void): HeldMoment;
  /** Whether a held moment shows the tree of a root as it is now, so that it must not be changed. */
  shows(root: Provider): boolean;
  /**
   * Notes that the fleet has a copy instead of a tree that held moments show.
   *
   * @param root the root of the copy
   * @param copied how many providers the tree has
   * @param mostKept how many providers may be kept for all held moments together; if they are more, the oldest moments are given up
   */
  noteCopy(root: Provider, copied: number, mostKept: number): void;
  /** Notes that another fleet was loaded. The former one does not change any more, and is kept for the moments held. */
  leaveFleet(providers: number): void;
  /** How many moments are held, and how many providers are kept for them at most. */
  readonly counts: { readonly held: number; readonly kept: number };
};

/** A moment that is held until its holder ends it, or has to give it up. */
export type HeldMoment = {
  /** It may be called more than once. */
  end(): void;
};

/** A moment. `kept` counts the providers that it shows, no newer moment shows, and the fleet has no more. */
type Held = { kept: number; readonly most: number; readonly giveUp: () => void };

/** No moment is held in the beginning. */
export function createHeldMoments(): HeldMoments {
  /** Oldest first. */
  const held: Held[] = [];
  /** The sum of all `kept`. */
  let kept = 0;
  /** How many of them, the newest ones, are of the present fleet. */
  let ofFleet = 0;
  /** The roots of trees that were copied since the newest moment: no held moment shows them. */
  let copied = new WeakSet<Provider>();

  const keepFor = (moment: Held | undefined, providers: number): void => {
    if (moment === undefined) return;
    const more = Math.min(providers, moment.most - moment.kept);
    moment.kept += more;
    kept += more;
  };
  const drop = (moment: Held): void => {
    const place = held.indexOf(moment);
    if (place === -1) return;
    if (place >= held.length - ofFleet) ofFleet -= 1;
    held.splice(place, 1);
    kept -= moment.kept;
    // The next older moment may show the same providers.
    keepFor(held[place - 1], moment.kept);
  };

  return {
    hold: (providers, giveUp) => {
      const moment = { kept: 0, most: providers, giveUp };
      held.push(moment);
      ofFleet += 1;
      copied = new WeakSet();
      return { end: () => drop(moment) };
    },
    shows: (root) => ofFleet > 0 && !copied.has(root),
    noteCopy: (root, providers, mostKept) => {
      copied.add(root);
      keepFor(held.at(-1), providers);
      // Oldest first, since an older moment may show what is counted for a newer one.
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
