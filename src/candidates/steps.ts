import type { Provider } from '../fleet/provider.ts';
import type { Choice } from './candidate.ts';
import { choicesFor, granularChoices } from './choices.ts';
import type { Order } from './order.ts';
import type { ResolvedRequest } from './resolve.ts';
import type { Sharing } from './sharing.ts';

/** One group of the request, in the order in which choices are made. */
export type Step = {
  /** The place of the group in the request. */
  readonly place: number;
  /** Listed for granular groups, which are met again and again. The group without suffix is generated, and comes first. */
  readonly choices: readonly Choice[] | Iterator<Choice>;
};

/**
 * The steps of an anchor, undefined where a granular group has no choice there. The group without suffix comes first: it may
 * have very many choices, and the first step is gone through only once. The others follow from few choices to many.
 */
export function stepsAt(
  anchor: Provider,
  { groups }: ResolvedRequest,
  sharing: Sharing,
  order: Order,
): readonly Step[] | undefined {
  const usable = sharing.usableBy(anchor);
  const steps: Step[] = [];
  for (const [place, group] of groups.entries()) {
    const choices = group.granular
      ? granularChoices(group, anchor, usable, order)
      : choicesFor(group, anchor, usable, order);
    if (isListed(choices) && choices.length === 0) return undefined;
    steps.push({ place, choices });
  }
  return areSorted(steps) ? steps : steps.sort((a, b) => choiceCount(a) - choiceCount(b));
}

/** Sorting takes as long as finding the choices, and most requests name what is rarest last. */
function areSorted(steps: readonly Step[]): boolean {
  let last = 0;
  for (const step of steps) {
    const count = choiceCount(step);
    if (count < last) return false;
    last = count;
  }
  return true;
}

/** How many choices a step has, as far as they are listed. */
export const choiceCount = ({ choices }: Step): number => (isListed(choices) ? choices.length : 0);

/** The next choice at a depth, undefined after the last. */
export function choiceAt(step: Step | undefined, nextPlaces: number[], depth: number): Choice | undefined {
  if (step === undefined) return undefined;
  const { choices } = step;
  if (!isListed(choices)) {
    const { done, value } = choices.next();
    return done ? undefined : value;
  }
  const place = nextPlaces[depth] ?? 0;
  nextPlaces[depth] = place + 1;
  return choices[place];
}

/** The choices at a depth, of a granular group; none of the group without suffix, which nobody has listed. */
export const listedAt = (steps: readonly Step[], depth: number): readonly Choice[] => {
  const choices = steps[depth]?.choices;
  return choices !== undefined && isListed(choices) ? choices : none;
};

/** Whether the choices of a step are those of a granular group. */
export const isListed = (choices: Step['choices']): choices is readonly Choice[] => Array.isArray(choices);

const none: readonly never[] = [];
