import type { Provider } from '../fleet/model/provider.ts';
import type { Choice } from './candidate.ts';
import type { Occupancy, SharedUsage } from './occupancy.ts';
import { isOneSubtree, type Step } from './steps.ts';

/** A combination of choices at an anchor, which the search extends and takes back step by step. */
export type Combination = {
  readonly steps: readonly Step[];
  /** The choices of the first steps, by depth. */
  readonly chosen: Choice[];
  readonly isolate: boolean;
  /** For each set of groups that must be one subtree, their depths, ascending. */
  readonly subtrees: readonly (readonly number[])[];
  readonly usage: SharedUsage;
  readonly occupancy: Occupancy;
  /** For each of these sets, all providers that may be its top; filled when first needed. */
  readonly tops: Set<Provider>[];
};

/** Whether a choice is possible beside those that are made. */
export const isPossible = ({ occupancy, usage }: Combination, choice: Choice): boolean =>
  occupancy.allows(choice) && usage.fits(choice);

/** Adds a choice, which must be possible. */
export function take({ chosen, occupancy, usage }: Combination, choice: Choice): void {
  chosen.push(choice);
  occupancy.add(choice);
  usage.take(choice);
}

/** Takes the last choice back. @returns false if there is none */
export function giveBack({ chosen, occupancy, usage }: Combination): boolean {
  const last = chosen.pop();
  if (last === undefined) return false;
  occupancy.remove(last);
  usage.giveBack(last);
  return true;
}

/** Whether each set of groups that the last choice completed is one subtree. */
export function satisfiesSubtrees({ subtrees, chosen }: Combination): boolean {
  for (const depths of subtrees) {
    if (depths.at(-1) === chosen.length - 1 && !isOneSubtree(chosen, depths)) return false;
  }
  return true;
}
