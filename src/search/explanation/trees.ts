import { type Provider, treeSize } from '../../fleet/model/provider.ts';
import { type Pieces, roundsPerClockRead, type Turns } from '../../request/turns.ts';
import { isAlone } from '../choices.ts';
import { type CandidatesAt, candidatesOf } from '../combinations.ts';
import { type Condition, conditionsWithout, losesItsGroup, requestWith } from '../conditions.ts';
import { satisfiesTraits } from '../filters.ts';
import { stepsToResolve } from '../place.ts';
import { overspends, type Work } from '../request.ts';
import { type ResolvedRequest, resolveVariant } from '../resolve.ts';
import { type ConditionCheck, conditionCheckOf, type Explaining } from './nearest.ts';

/** The verdicts about one tree. Each list has an entry for each condition, and is reused for the next tree. */
export type TreeVerdicts = {
  fits: Verdict;
  /**
   * Whether the tree fits a query with this condition only. For traits, aggregates and in_tree: whether a provider
   * meets it.
   */
  readonly alone: Verdict[];
  /** Whether the tree fits a query with this condition and all before it. */
  readonly left: Verdict[];
  /** Whether the tree fits if this condition is dropped. */
  readonly without: Verdict[];
  /** Whether the tree may fit if the condition has another amount: false is certain. */
  readonly otherAmount: Verdict[];
};

/** Judges trees in two steps: first whether they fit, which matters most if the budget is not enough, then the rest. */
type TreeJudge = {
  readonly checks: readonly ConditionCheck[];
  /** Whether a tree is a single provider, with which no other tree shares, and the query has one group. */
  isLone(anchor: Provider): boolean;
  /** Fills in all verdicts of a lone tree. */
  lone(anchor: Provider, verdicts: TreeVerdicts): void;
  /** Fills in `fits` and `alone` for any tree. */
  first(anchor: Provider, verdicts: TreeVerdicts): Pieces<void>;
  /** Fills in `left`, `without` and `otherAmount`. @param verdicts of the same tree, as `first` has filled them in */
  rest(anchor: Provider, verdicts: TreeVerdicts): Pieces<void>;
};

/**
 * Creates the judge of the trees of a fleet. It searches for variants of the query as rarely as possible: a tree that
 * fits a query also fits with fewer conditions, and a tree that does not fit does not fit with more conditions.
 */
export function treeJudge({ names, conditions, sharing, turns }: Explaining, probes: Probes): TreeJudge {
  const checks = conditions.map((condition) => conditionCheckOf(names, condition, conditions));
  const suffixes = new Set(conditions.flatMap((condition) => ('suffix' in condition ? [condition.suffix] : [])));
  return {
    checks,
    isLone: (anchor) => suffixes.size <= 1 && isAlone(anchor, sharing.usableBy(anchor)),
    lone: judgeOfLone(conditions, checks, probes),
    ...judgeBySearch(conditions, checks, probes, turns),
  };
}

/**
 * Judges trees of a single provider, with which no other tree shares, for a query with one group. Then no condition depends
 * on another one, and the tree fits if the provider meets each condition. In most fleets all trees are like this.
 */
function judgeOfLone(
  conditions: readonly Condition[],
  checks: readonly ConditionCheck[],
  { work }: Probes,
): TreeJudge['lone'] {
  const meets = checks.map((check) => check.meets);
  const isLast = conditions.map((condition) => losesItsGroup(conditions, condition));
  return (anchor, verdicts) => {
    const { alone, left, without, otherAmount } = verdicts;
    if (overspends(work, meets.length)) return forget(verdicts);
    let unmet = 0;
    let firstUnmet = meets.length;
    for (let index = 0; index < meets.length; index++) {
      const isMet = meets[index]?.(anchor, anchor) === true;
      alone[index] = isMet;
      if (isMet) continue;
      unmet += 1;
      if (unmet === 1) firstUnmet = index;
    }
    verdicts.fits = unmet === 0;
    for (let index = 0; index < meets.length; index++) {
      const meetsOthers = unmet === 0 || (unmet === 1 && index === firstUnmet);
      left[index] = index < firstUnmet;
      otherAmount[index] = meetsOthers;
      without[index] = meetsOthers || isLast[index] === true;
    }
  };
}

/** Judges any tree. */
function judgeBySearch(
  conditions: readonly Condition[],
  checks: readonly ConditionCheck[],
  probes: Probes,
  turns: Turns | undefined,
): Pick<TreeJudge, 'first' | 'rest'> {
  const fitsAll = probes.of(() => conditions);
  const alone = conditions.map((condition, index): Probe => {
    if (condition.kind === 'isolate' || condition.kind === 'subtree') return () => undefined;
    if (condition.kind === 'resource') return probes.of(() => [condition]);
    return (anchor) => (overspends(probes.work, treeSize(anchor)) ? undefined : checks[index]?.isMetIn(anchor));
  });
  const left = conditions.map((_, index) =>
    index === conditions.length - 1 ? fitsAll : probes.of(() => conditions.slice(0, index + 1)),
  );
  const without = conditions.map((condition) => probes.of(() => conditionsWithout(conditions, condition)));
  // A group without resources that only forbids fits nowhere, but may fit with more conditions.
  const isMonotone = everyGroupHasResources(conditions);
  const relaxes = conditions.map((condition) => isMonotone && !mayHelp(conditions, condition));
  const tree: JudgedBySearch = { conditions, fitsAll, alone, left, without, isMonotone, relaxes, turns };
  return {
    first: (anchor, verdicts) => judgeFirst(tree, anchor, verdicts),
    rest: (anchor, verdicts) => judgeRest(tree, anchor, verdicts),
  };
}

/** The probes by which trees are judged, with an entry for each condition in each list. */
type JudgedBySearch = {
  readonly conditions: readonly Condition[];
  readonly fitsAll: Probe;
  readonly alone: readonly Probe[];
  readonly left: readonly Probe[];
  readonly without: readonly Probe[];
  readonly isMonotone: boolean;
  readonly relaxes: readonly boolean[];
  readonly turns: Turns | undefined;
};

function* judgeFirst(
  { conditions, fitsAll, alone, turns }: JudgedBySearch,
  anchor: Provider,
  verdicts: TreeVerdicts,
): Pieces<void> {
  verdicts.fits = fitsAll(anchor);
  for (const [index, condition] of conditions.entries()) {
    if (turns?.isOver(roundsPerClockRead)) yield undefined;
    const isImplied = verdicts.fits === true && condition.kind === 'resource';
    verdicts.alone[index] = isImplied || alone[index]?.(anchor);
  }
}

function* judgeRest(
  { conditions, left, without, isMonotone, relaxes, turns }: JudgedBySearch,
  anchor: Provider,
  verdicts: TreeVerdicts,
): Pieces<void> {
  const { fits } = verdicts;
  let failedAt = Number.POSITIVE_INFINITY;
  for (let index = 0; index < conditions.length; index++) {
    if (turns?.isOver(roundsPerClockRead)) yield undefined;
    const isImplied = isMonotone && (fits === true || failedAt < index);
    const verdict = isImplied ? fits === true : left[index]?.(anchor);
    verdicts.left[index] = verdict;
    if (isMonotone && verdict === false && index < failedAt) failedAt = index;
  }
  for (let index = 0; index < conditions.length; index++) {
    if (turns?.isOver(roundsPerClockRead)) yield undefined;
    const isRelaxed = relaxes[index] === true;
    const failsBefore = isMonotone && failedAt < index;
    const isImplied = failsBefore || (isRelaxed && fits === true);
    const verdict = isImplied ? !failsBefore : without[index]?.(anchor);
    verdicts.without[index] = verdict;
    verdicts.otherAmount[index] = isRelaxed || failsBefore ? verdict : undefined;
  }
}

const everyGroupHasResources = (conditions: readonly Condition[]): boolean =>
  conditions.every(
    (condition) =>
      !('suffix' in condition) ||
      conditions.some((other) => other.kind === 'resource' && other.suffix === condition.suffix),
  );

/**
 * Whether a tree that fits might not fit without a condition. The provider of a dropped class may be the one with a
 * trait that the group without suffix requires. The provider of a dropped group may be the top of a subtree.
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

/** The verdicts of a tree before any verdict is known. */
export const newVerdicts = (count: number): TreeVerdicts => ({
  fits: undefined,
  alone: Array.from({ length: count }, () => undefined),
  left: Array.from({ length: count }, () => undefined),
  without: Array.from({ length: count }, () => undefined),
  otherAmount: Array.from({ length: count }, () => undefined),
});

/** The answer to a question; undefined if it would take too much work. */
export type Verdict = boolean | undefined;

/** Whether a tree fits a variant of a query. */
type Probe = (anchor: Provider) => Verdict;

/** How many steps one search at one tree may take, so that a hard tree does not use up the budget of the other trees. */
const mostStepsAtTree = 200_000;

/** Probes that run the search for candidates. All of them share one budget. */
export type Probes = {
  readonly work: Work;
  /** A probe for the request that has some conditions. The conditions are listed at the first use of the probe. */
  of(conditions: () => readonly Condition[]): Probe;
  /** The same for a request whose names are already looked up. */
  ofResolved(request: ResolvedRequest): Probe;
};

/** Makes the probes of an explanation. */
export function createProbes({ names, sharing, work }: Explaining): Probes {
  const atTree: Work = { steps: 0 };
  const ofResolved = (request: ResolvedRequest): Probe => {
    if (request.groups.length === 0) return () => true;
    const candidatesAt = candidatesOf(request, sharing, 'steady', { work: atTree });
    return (anchor) => {
      if (!satisfiesTraits(anchor.traitIds, request.rootTraits)) return false;
      const providers = treeSize(anchor) + sharing.usableBy(anchor).length;
      if (overspends(work, request.groups.length * providers)) return undefined;
      const granted = Math.min(work.steps, mostStepsAtTree);
      atTree.steps = granted;
      const found = hasFirst(candidatesAt, anchor);
      work.steps -= granted - atTree.steps;
      return found || atTree.steps >= 0 ? found : undefined;
    };
  };
  return {
    work,
    ofResolved,
    of: (conditions) => {
      let probe: Probe | undefined;
      return (anchor) => {
        if (probe === undefined) {
          if (work.steps < 0) return undefined;
          const wanted = conditions();
          if (overspends(work, wanted.length * stepsToResolve)) return undefined;
          const resolved = resolveVariant(names, requestWith(wanted));
          probe = resolved === 'nothing' ? () => false : ofResolved(resolved);
        }
        return probe(anchor);
      };
    },
  };
}

function hasFirst(candidatesAt: CandidatesAt, anchor: Provider): boolean {
  for (const _ of candidatesAt(anchor)) return true;
  return false;
}
