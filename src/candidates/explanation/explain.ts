import type { Fleet } from '../../fleet/fleet.ts';
import type { Provider } from '../../fleet/provider.ts';
import type { Condition } from '../conditions.ts';
import { type Sharing, sharingIn } from '../sharing.ts';
import { largestAmount } from './largest.ts';
import { type NearTree, nearestTrees } from './nearest.ts';
import { createProbes, type Verdict } from './probes.ts';
import { newVerdicts, type TreeVerdicts, treeJudge } from './trees.ts';

/**
 * In how many trees a query fits, and why it does not fit in others. Numbers that would take too much work are
 * undefined.
 */
export type Explanation = {
  readonly trees: number;
  readonly fitting: number | undefined;
  /** Whether all numbers are known. */
  readonly complete: boolean;
  readonly conditions: readonly ConditionFigures[];
  readonly nearest: readonly NearTree[];
};

/** How many trees one condition leaves. */
export type ConditionFigures = {
  readonly condition: Condition;
  /** Trees that fit a query with this condition only; null for conditions about several groups. */
  readonly alone: number | null | undefined;
  /** Trees that fit a query with this condition and all before it. */
  readonly left: number | undefined;
  /** Trees that fit if this condition is dropped. */
  readonly without: number | undefined;
  /**
   * For a resource, the largest amount that fits in some tree if all other conditions stay; null for other conditions.
   */
  readonly largest: number | null | undefined;
};

/** What is explained, and with how much work. */
export type ExplainOptions = {
  /** How many of the trees that do not fit are returned. */
  readonly nearest: number;
  /** The root of the tree to explain; undefined for all trees. */
  readonly tree?: Provider | undefined;
  /** How many looks it may take (work.ts). */
  readonly looks?: number;
};

/** About a tenth of a second. */
const mostLooks = 6_000_000;

/**
 * Explains what each condition of a query does: it searches for candidates of the query with some conditions dropped.
 * The work is counted and not timed, so that the same fleet has the same explanation.
 *
 * @param conditions of a query whose names exist
 */
export function explain(
  fleet: Fleet,
  conditions: readonly Condition[],
  { nearest: limit, tree, looks = mostLooks }: ExplainOptions,
): Explanation {
  const sharing = rememberingLast(sharingIn(fleet));
  const probes = createProbes(fleet, sharing, { looks });
  const judge = treeJudge(fleet, conditions, sharing, probes);
  const nearest = nearestTrees(fleet, conditions, judge.checks, sharing, limit, probes.work);
  const roots = tree === undefined ? fleet.roots : [tree];

  const fitting = newTally();
  const alone = conditions.map(newTally);
  const left = conditions.map(newTally);
  const without = conditions.map(newTally);
  const mayFitOther: Provider[][] = conditions.map(() => []);
  const verdicts = newVerdicts(conditions.length);
  /** Trees for which `judge.rest` is needed. It comes after `judge.first` for all trees, which matters more. */
  const later: { readonly anchor: Provider; readonly fits: Verdict }[] = [];
  const noteRest = (anchor: Provider): void => {
    countEach(left, verdicts.left);
    countEach(without, verdicts.without);
    noteTrees(mayFitOther, verdicts, anchor);
    if (verdicts.fits === false) nearest.note(anchor, verdicts.without);
  };
  for (const anchor of roots) {
    judge.first(anchor, verdicts);
    count(fitting, verdicts.fits);
    countEach(alone, verdicts.alone);
    if (judge.isLone(anchor)) noteRest(anchor);
    else later.push({ anchor, fits: verdicts.fits });
  }
  for (const { anchor, fits } of later) {
    verdicts.fits = fits;
    judge.rest(anchor, verdicts);
    noteRest(anchor);
  }

  const figures = conditions.map((condition, place): ConditionFigures => {
    const isBetween = condition.kind === 'isolate' || condition.kind === 'subtree';
    const trees = mayFitOther[place] ?? [];
    return {
      condition,
      alone: isBetween ? null : numberOf(alone[place]),
      left: numberOf(left[place]),
      without: numberOf(without[place]),
      largest:
        condition.kind === 'resource' ? largestAmount(fleet, conditions, condition, trees, sharing, probes) : null,
    };
  });
  const numbers = [
    numberOf(fitting),
    ...figures.flatMap(({ alone, left, without, largest }) => [alone, left, without, largest]),
  ];
  return {
    trees: roots.length,
    fitting: numberOf(fitting),
    complete: nearest.isComplete() && !numbers.includes(undefined),
    conditions: figures,
    nearest: nearest.list(),
  };
}

/** A number of trees; unknown as soon as the verdict about one tree is unknown. */
type Tally = { count: number; isKnown: boolean };

const newTally = (): Tally => ({ count: 0, isKnown: true });

const numberOf = (tally: Tally | undefined): number | undefined => (tally?.isKnown ? tally.count : undefined);

function count(tally: Tally, verdict: Verdict): void {
  if (verdict === true) tally.count += 1;
  else if (verdict === undefined) tally.isKnown = false;
}

function countEach(tallies: readonly Tally[], verdicts: readonly Verdict[]): void {
  for (let place = 0; place < tallies.length; place++) {
    const tally = tallies[place];
    if (tally !== undefined) count(tally, verdicts[place]);
  }
}

function noteTrees(lists: readonly Provider[][], { otherAmount }: TreeVerdicts, anchor: Provider): void {
  for (let place = 0; place < lists.length; place++) if (otherAmount[place] !== false) lists[place]?.push(anchor);
}

/** Caches the answer for the latest tree: many questions about one tree come before the next tree. */
function rememberingLast(sharing: Sharing): Sharing {
  let last: { readonly root: Provider; readonly usable: readonly Provider[] } | undefined;
  return {
    ...sharing,
    usableBy: (root) => {
      if (last?.root !== root) last = { root, usable: sharing.usableBy(root) };
      return last.usable;
    },
  };
}
