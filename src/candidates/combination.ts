import type { Provider } from '../fleet/provider.ts';
import type { Choice } from './candidate.ts';
import type { Occupancy } from './occupancy.ts';
import type { SharedUsage } from './shared_usage.ts';
import type { Step } from './steps.ts';
import { isOneSubtree } from './subtrees.ts';

/** A combination of choices under way at an anchor. */
export type Combination = {
  readonly steps: readonly Step[];
  /** By depth: the first steps have their choices. */
  readonly chosen: Choice[];
  readonly isolate: boolean;
  /** For each set of groups that must be one subtree their depths, ascending. */
  readonly subtrees: readonly (readonly number[])[];
  readonly usage: SharedUsage;
  readonly occupancy: Occupancy;
  /** For each of these sets all who may be its top, once somebody asked. */
  readonly tops: Set<Provider>[];
};

/** Whether a choice gets along with those that are made. */
export const isPossible = ({ occupancy, usage }: Combination, choice: Choice): boolean =>
  occupancy.leavesRoomFor(choice) && usage.fits(choice);

export function take({ chosen, occupancy, usage }: Combination, choice: Choice): void {
  chosen.push(choice);
  occupancy.add(choice);
  usage.take(choice);
}

/** Takes the last choice back. @returns false where there is none */
export function giveBack({ chosen, occupancy, usage }: Combination): boolean {
  const last = chosen.pop();
  if (last === undefined) return false;
  occupancy.remove(last);
  usage.giveBack(last);
  return true;
}

/** Whether each set that is complete with the last choice is one subtree. */
export function satisfiesSubtrees({ subtrees, chosen }: Combination): boolean {
  for (const depths of subtrees) {
    if (depths.at(-1) === chosen.length - 1 && !isOneSubtree(chosen, depths)) return false;
  }
  return true;
}
