import type { Provider } from '../fleet/provider.ts';
import { type Choice, granularChoice } from './candidate.ts';
import { choicesFor, granularProviders } from './choices.ts';
import type { ProviderOrder } from './order.ts';
import type { ResolvedGroup, ResolvedRequest } from './resolve.ts';
import type { Sharing } from './sharing.ts';
import type { Work } from './work.ts';

/** One group of the request, in the order in which choices are made. */
export type Step = {
  /** The place of the group in the request. */
  readonly place: number;
  readonly group: ResolvedGroup;
  /** Of a granular group, which is met again and again: each provider is a choice. */
  readonly providers: readonly Provider[];
  /** The choices that were asked for; of most anchors that is the first. */
  readonly choices: Choice[];
  /** Of the group without suffix, which comes first, and is gone through once: there may be very many. */
  readonly generated: Iterator<Choice> | undefined;
};

/**
 * The steps of an anchor, undefined where a granular group has no choice there: from few choices to many, behind the group without
 * suffix, which lists none.
 */
export function stepsAt(
  anchor: Provider,
  { groups }: ResolvedRequest,
  sharing: Sharing,
  order: ProviderOrder,
  work?: Work,
): readonly Step[] | undefined {
  const usable = sharing.usableBy(anchor);
  const steps: Step[] = [];
  for (const [place, group] of groups.entries()) {
    const { granular } = group;
    const providers = granular ? granularProviders(group, anchor, usable, order) : none;
    if (granular && providers.length === 0) return undefined;
    const generated = granular ? undefined : choicesFor(group, anchor, usable, order, work)[Symbol.iterator]();
    steps.push({ place, group, providers, choices: [], generated });
  }
  return areSorted(steps) ? steps : steps.sort((a, b) => a.providers.length - b.providers.length);
}

/** Sorting takes as long as finding the choices, and most requests name what is rarest last. */
function areSorted(steps: readonly Step[]): boolean {
  let last = 0;
  for (const { providers } of steps) {
    if (providers.length < last) return false;
    last = providers.length;
  }
  return true;
}

/** For each group, by its place in the request, the depth at which its choice is made. */
export const depthsOf = (steps: readonly Step[]): readonly number[] =>
  steps.map((_, place) => steps.findIndex((step) => step.place === place));

/** The next choice at a depth, undefined after the last. */
export function choiceAt(step: Step | undefined, nextPlaces: number[], depth: number): Choice | undefined {
  if (step === undefined) return undefined;
  if (step.generated !== undefined) {
    const { done, value } = step.generated.next();
    return done ? undefined : value;
  }
  const place = nextPlaces[depth] ?? 0;
  nextPlaces[depth] = place + 1;
  return choiceOf(step, place);
}

/** A choice of a granular group; the same object each time. */
function choiceOf({ group, providers, choices }: Step, place: number): Choice | undefined {
  const known = choices[place];
  const provider = providers[place];
  if (known !== undefined || provider === undefined) return known;
  const choice = granularChoice(group, provider);
  choices[place] = choice;
  return choice;
}

/** All choices of a granular group; none of the group without suffix, which nobody has listed. */
export function listed(step: Step | undefined): readonly Choice[] {
  if (step === undefined) return none;
  for (let place = step.choices.length; place < step.providers.length; place++) choiceOf(step, place);
  return step.choices;
}

const none: readonly never[] = [];
