import type { Provider } from '../fleet/provider.ts';
import type { Order } from './anchors.ts';
import type { Candidate, Choice } from './candidate.ts';
import { choiceAlone, choicesFor, isAlone } from './choices.ts';
import { haveProspects } from './prospects.ts';
import type { ResolvedGroup, ResolvedRequest } from './resolve.ts';
import { SharedUsage } from './shared_usage.ts';
import type { Sharing } from './sharing.ts';
import { canBeOneSubtree, isOneSubtree } from './subtrees.ts';

/** After this many steps in vain, a combination is looked at for whether it has prospects before it is taken further. */
const patience = 32;

/** One group of the request, in the order in which choices are made. */
type Step = {
  /** The place of the group in the request. */
  readonly place: number;
  /** Listed for granular groups, which are met again and again. The group without suffix is generated, and comes first. */
  readonly choices: Iterable<Choice>;
  readonly listed: readonly Choice[] | undefined;
};

/**
 * All candidates of one anchor: the product of the groups' choices, cut as soon as a combination is known to fail.
 *
 * The work for a candidate depends on the number of groups and providers, not on that of combinations, but for one thing:
 * groups that want unlike amounts of the same class may pass for satisfiable together when they are not (bin packing).
 */
export function candidatesAt(
  anchor: Provider,
  request: ResolvedRequest,
  sharing: Sharing,
  order: Order,
): Iterable<Candidate> {
  const [only] = request.groups;
  if (only === undefined || request.groups.length > 1) return combinationsAt(anchor, request, sharing, order);
  // Nothing to combine: half of all queries. And a flat host needs no generator either.
  if (only.granular || !isAlone(anchor, sharing.usableBy(anchor))) {
    return loneChoicesAt(anchor, only, request, sharing, order);
  }
  const choice = choiceAlone(only, anchor);
  return choice === undefined ? none : [[choice]];
}

const none: readonly never[] = [];

function* loneChoicesAt(
  anchor: Provider,
  group: ResolvedGroup,
  { nested }: ResolvedRequest,
  sharing: Sharing,
  order: Order,
): Generator<Candidate> {
  for (const choice of choicesFor(group, anchor, sharing.usableBy(anchor), order)) {
    if (nested || usesEachTreeOnce([choice])) yield [choice];
  }
}

function* combinationsAt(
  anchor: Provider,
  request: ResolvedRequest,
  sharing: Sharing,
  order: Order,
): Generator<Candidate> {
  const steps = stepsAt(anchor, request, sharing, order);
  if (steps === undefined) return;
  const depths = request.groups.map((_, place) => steps.findIndex((step) => step.place === place));
  const subtrees = request.sameSubtrees.map((places) => places.flatMap((place) => depths[place] ?? []));
  const usage = new SharedUsage(request.groups);
  const chosen: Choice[] = [];

  const isPossible = (choice: Choice): boolean =>
    !(request.isolate && isTaken(choice, chosen)) &&
    (request.nested || usesEachTreeOnce([...chosen, choice])) &&
    usage.fits(choice);

  const providersAt = (depth: number): readonly Provider[] => chosen[depth]?.providers ?? [];
  /** Whether each set that is complete with the last choice is one subtree. */
  const satisfiesSubtrees = (): boolean =>
    subtrees.every((set) => Math.max(...set) !== chosen.length - 1 || isOneSubtree(set.flatMap(providersAt)));

  const hasProspects = (): boolean => {
    const open = steps.map(({ listed }, depth) => (depth < chosen.length ? undefined : listed?.filter(isPossible)));
    const alternatives = (depth: number) => {
      const choices = open[depth];
      return choices === undefined ? [] : [choices.flatMap(({ providers }) => providers)];
    };
    return (
      haveProspects(
        open.flatMap((choices) => (choices === undefined ? [] : [choices])),
        usage,
        request.isolate,
      ) && subtrees.every((set) => canBeOneSubtree(set.flatMap(providersAt), set.flatMap(alternatives)))
    );
  };

  let vain = 0;
  const extend = function* (depth: number): Generator<Candidate> {
    for (const choice of steps[depth]?.choices ?? []) {
      if (!isPossible(choice)) continue;
      chosen.push(choice);
      usage.take(choice);
      if (satisfiesSubtrees()) {
        if (chosen.length === steps.length) {
          vain = 0;
          yield depths.flatMap((each) => chosen[each] ?? []);
        } else if (++vain < patience || hasProspects()) {
          yield* extend(depth + 1);
        }
      }
      usage.giveBack(choice);
      chosen.pop();
    }
  };
  if (hasProspects()) yield* extend(0);
}

/**
 * The steps of an anchor, undefined where a granular group has no choice there. The group without suffix comes first: it may
 * have very many choices, and the first step is gone through only once. The others follow from few choices to many.
 */
function stepsAt(
  anchor: Provider,
  { groups }: ResolvedRequest,
  sharing: Sharing,
  order: Order,
): readonly Step[] | undefined {
  const usable = sharing.usableBy(anchor);
  const steps: Step[] = [];
  for (const [place, group] of groups.entries()) {
    const choices = choicesFor(group, anchor, usable, order);
    const listed = group.granular ? [...choices] : undefined;
    if (listed?.length === 0) return undefined;
    steps.push({ place, choices: listed ?? choices, listed });
  }
  return steps.sort((a, b) => (a.listed?.length ?? 0) - (b.listed?.length ?? 0));
}

const isTaken = (choice: Choice, chosen: readonly Choice[]): boolean =>
  chosen.some(({ group, providers }) => group.granular && providers[0] === choice.providers[0]);

/** Before 1.29 trees are invisible: no two providers of one. */
function usesEachTreeOnce(choices: readonly Choice[]): boolean {
  const providers = new Set(choices.flatMap((choice) => choice.providers));
  return new Set([...providers].map(({ root }) => root)).size === providers.size;
}
