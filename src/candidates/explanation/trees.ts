import type { Fleet } from '../../fleet/fleet.ts';
import type { Provider } from '../../fleet/provider.ts';
import { isAlone } from '../choices.ts';
import { type Condition, conditionsWithout, losesItsGroup } from '../conditions.ts';
import type { Sharing } from '../sharing.ts';
import { isSpent } from '../work.ts';
import { type Meeting, meetingOf } from './meets.ts';
import type { Probe, Probes, Verdict } from './probes.ts';

/** What is found out about one tree, in the order of the conditions; the lists are used again for the next tree. */
export type TreeVerdicts = {
  fits: Verdict;
  /** Whether it fits a query of the condition only; for traits, aggregates and in_tree, whether a provider of it meets it. */
  readonly alone: Verdict[];
  /** Whether it fits the condition and all before it. */
  readonly left: Verdict[];
  /** Whether it fits if the condition is dropped. */
  readonly without: Verdict[];
  /** Whether it may fit another amount in the place of the condition's: false is certain. */
  readonly otherAmount: Verdict[];
};

/** Finds out about trees: first whether they fit, which is wanted the most, and then the rest. */
export type TreeJudge = {
  readonly meetings: readonly Meeting[];
  /** Whether all is found out about a tree at once, for hardly more than whether it fits. */
  isLone(anchor: Provider): boolean;
  /** Fills in `fits` and `alone`; all where the tree is a lone provider. */
  first(anchor: Provider, verdicts: TreeVerdicts): void;
  /** Fills in `left`, `without` and `otherAmount`. @param verdicts of the same tree, as `first` left them */
  rest(anchor: Provider, verdicts: TreeVerdicts): void;
};

/**
 * @returns the judge of the trees of a fleet. What the search says about variants of a query is asked as seldom as may be: a tree
 *   that fits a query fits it with conditions taken out, and one that does not fit it does not fit one that asks for more.
 */
export function treeJudge(fleet: Fleet, conditions: readonly Condition[], sharing: Sharing, probes: Probes): TreeJudge {
  const meetings = conditions.map((condition) => meetingOf(fleet, condition, conditions));
  const { first, rest } = judgeBySearch(conditions, meetings, probes);
  const suffixes = new Set(conditions.flatMap((condition) => ('suffix' in condition ? [condition.suffix] : [])));
  if (suffixes.size > 1) return { meetings, isLone: () => false, first, rest };
  const judgeLone = judgeOfLone(conditions, meetings, probes);
  const isLone = (anchor: Provider): boolean => isAlone(anchor, sharing.usableBy(anchor));
  return {
    meetings,
    isLone,
    first: (anchor, verdicts) => (isLone(anchor) ? judgeLone(anchor, verdicts) : first(anchor, verdicts)),
    rest,
  };
}

/**
 * The judge of trees of one provider, which nothing shares with, for one group: what the provider must be does not depend on
 * anything else, so the tree fits if each condition is met. Of most fleets those are all trees.
 */
function judgeOfLone(
  conditions: readonly Condition[],
  meetings: readonly Meeting[],
  { work }: Probes,
): TreeJudge['first'] {
  const meets = meetings.map((meeting) => meeting.meets);
  const isLast = conditions.map((condition) => losesItsGroup(conditions, condition));
  return (anchor, verdicts) => {
    const { alone, left, without, otherAmount } = verdicts;
    if (isSpent(work, meets.length)) return forget(verdicts);
    let unmet = 0;
    let firstUnmet = meets.length;
    for (let place = 0; place < meets.length; place++) {
      const isMet = meets[place]?.(anchor, anchor) === true;
      alone[place] = isMet;
      if (isMet) continue;
      unmet += 1;
      if (unmet === 1) firstUnmet = place;
    }
    verdicts.fits = unmet === 0;
    for (let place = 0; place < meets.length; place++) {
      const meetsOthers = unmet === 0 || (unmet === 1 && place === firstUnmet);
      left[place] = place < firstUnmet;
      otherAmount[place] = meetsOthers;
      without[place] = meetsOthers || isLast[place] === true;
    }
  };
}

/** The judge of any tree. */
function judgeBySearch(
  conditions: readonly Condition[],
  meetings: readonly Meeting[],
  probes: Probes,
): Pick<TreeJudge, 'first' | 'rest'> {
  const fitsAll = probes.of(() => conditions);
  const alone = conditions.map((condition, place): Probe => {
    if (condition.kind === 'isolate' || condition.kind === 'subtree') return () => undefined;
    if (condition.kind === 'resource') return probes.of(() => [condition]);
    return (anchor) => (isSpent(probes.work, anchor.tree.length) ? undefined : meetings[place]?.isMetIn(anchor));
  });
  const left = conditions.map((_, place) =>
    place === conditions.length - 1 ? fitsAll : probes.of(() => conditions.slice(0, place + 1)),
  );
  const without = conditions.map((condition) => probes.of(() => conditionsWithout(conditions, condition)));
  // A group that asks for nothing but absence fits nowhere, and more conditions may change that.
  const isMonotone = everyGroupHasResources(conditions);
  const relaxes = conditions.map((condition) => isMonotone && !mayHelp(conditions, condition));
  return {
    first: (anchor, verdicts) => {
      verdicts.fits = fitsAll(anchor);
      for (const [place, condition] of conditions.entries()) {
        const isImplied = verdicts.fits === true && condition.kind === 'resource';
        verdicts.alone[place] = isImplied || alone[place]?.(anchor);
      }
    },
    rest: (anchor, verdicts) => {
      const { fits } = verdicts;
      let failedAt = Number.POSITIVE_INFINITY;
      for (let place = 0; place < conditions.length; place++) {
        const isImplied = isMonotone && (fits === true || failedAt < place);
        const verdict = isImplied ? fits === true : left[place]?.(anchor);
        verdicts.left[place] = verdict;
        if (isMonotone && verdict === false && place < failedAt) failedAt = place;
      }
      for (let place = 0; place < conditions.length; place++) {
        const isRelaxed = relaxes[place] === true;
        const failsBefore = isMonotone && failedAt < place;
        const isImplied = failsBefore || (isRelaxed && fits === true);
        const verdict = isImplied ? !failsBefore : without[place]?.(anchor);
        verdicts.without[place] = verdict;
        verdicts.otherAmount[place] = isRelaxed || failsBefore ? verdict : undefined;
      }
    },
  };
}

const everyGroupHasResources = (conditions: readonly Condition[]): boolean =>
  conditions.every(
    (condition) =>
      !('suffix' in condition) ||
      conditions.some((other) => other.kind === 'resource' && other.suffix === condition.suffix),
  );

/**
 * Whether a tree may fit because of a condition: the provider of a class may bring a trait that the group without suffix needs, and
 * that of a lost group may be the top of a subtree.
 */
function mayHelp(conditions: readonly Condition[], dropped: Condition): boolean {
  if (dropped.kind !== 'resource') return false;
  const { suffix } = dropped;
  if (!losesItsGroup(conditions, dropped)) {
    return suffix === '' && conditions.some((other) => other.kind === 'trait' && other.suffix === suffix);
  }
  return conditions.some((other) => other.kind === 'subtree' && other.suffixes.has(suffix));
}

function forget(verdicts: TreeVerdicts): void {
  verdicts.fits = undefined;
  for (const list of [verdicts.alone, verdicts.left, verdicts.without, verdicts.otherAmount]) list.fill(undefined);
}

/** Nothing is known yet. */
export const newVerdicts = (count: number): TreeVerdicts => ({
  fits: undefined,
  alone: Array.from({ length: count }, () => undefined),
  left: Array.from({ length: count }, () => undefined),
  without: Array.from({ length: count }, () => undefined),
  otherAmount: Array.from({ length: count }, () => undefined),
});
