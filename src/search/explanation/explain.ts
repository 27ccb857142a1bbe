import type { Fleet } from '../../fleet/model/fleet.ts';
import { inventoryOf, type Provider, treeOf, treeSize } from '../../fleet/model/provider.ts';
import { capacity } from '../../placement/inventory.ts';
import { type Pieces, roundsPerClockRead, type Turns } from '../../request/turns.ts';
import { type Sharing, sharingIn } from '../anchors.ts';
import { type Condition, type ResourceCondition, requestWith } from '../conditions.ts';
import { overspends } from '../request.ts';
import { type KnownNames, type ResolvedRequest, resolveVariant } from '../resolve.ts';
import { type Explaining, type NearTree, nearestTrees } from './nearest.ts';
import { createProbes, newVerdicts, type Probes, type TreeVerdicts, treeJudge, type Verdict } from './trees.ts';

/**
 * In how many trees a query fits, and why it does not fit in others. Numbers that would take too much work are
 * undefined.
 */
export type Explanation = {
  readonly trees: number;
  /** How many of the trees are one provider that shares, such as a pool of licences. */
  readonly pools: number;
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

/** Which trees are explained, and with how much work. */
export type ExplainOptions = {
  /** How many of the trees that do not fit are returned. */
  readonly nearest: number;
  /** The root of the tree to explain; undefined for all trees. */
  readonly tree?: Provider | undefined;
  /** How many steps it may take (request.ts). */
  readonly steps?: number;
  /** The turns after which the work pauses; without turns the work does not pause. */
  readonly turns?: Turns | undefined;
};

/** About a tenth of a second. */
const mostSteps = 6_000_000;

/**
 * Explains what each condition of a query does: it searches for candidates of the query with some conditions dropped.
 * The work is counted and not timed, so that the same fleet has the same explanation. Where the work pauses, the snapshot of the fleet
 * must be held (src/fleet/model/held_snapshots.ts).
 *
 * @param conditions of a query whose names exist
 */
export function* explain(
  fleet: Fleet,
  conditions: readonly Condition[],
  { nearest: limit, tree, steps = mostSteps, turns }: ExplainOptions,
): Pieces<Explanation> {
  const sharing = rememberingLast(sharingIn(fleet));
  const explaining = { names: namesNow(fleet, conditions), conditions, sharing, work: { steps }, turns };
  const probes = createProbes(explaining);
  const judge = treeJudge(explaining, probes);
  const nearest = nearestTrees(explaining, judge.checks, limit);
  const roots = tree === undefined ? [...fleet.roots] : [tree];

  const fitting = newTally();
  const alone = conditions.map(newTally);
  const left = conditions.map(newTally);
  const without = conditions.map(newTally);
  const mayFitOther: Provider[][] = conditions.map(() => []);
  const verdicts = newVerdicts(conditions.length);
  /** Trees for which `judge.rest` is needed. `judge.first` is done for all trees before: its verdicts matter more. */
  const later: { readonly anchor: Provider; readonly fits: Verdict }[] = [];
  const noteRest = (anchor: Provider): void => {
    countEach(left, verdicts.left);
    countEach(without, verdicts.without);
    noteTrees(mayFitOther, verdicts, anchor);
    if (verdicts.fits === false) nearest.note(anchor, verdicts.without);
  };
  for (const anchor of roots) {
    if (turns?.isOver(conditions.length * treeSize(anchor))) yield undefined;
    const isLone = judge.isLone(anchor);
    if (isLone) judge.lone(anchor, verdicts);
    else yield* judge.first(anchor, verdicts);
    count(fitting, verdicts.fits);
    countEach(alone, verdicts.alone);
    if (isLone) noteRest(anchor);
    else later.push({ anchor, fits: verdicts.fits });
  }
  for (const { anchor, fits } of later) {
    if (turns?.isOver(conditions.length * treeSize(anchor))) yield undefined;
    verdicts.fits = fits;
    yield* judge.rest(anchor, verdicts);
    noteRest(anchor);
  }

  const figures: ConditionFigures[] = [];
  for (const [index, condition] of conditions.entries()) {
    if (turns?.isOver(roundsPerClockRead)) yield undefined;
    const isBetween = condition.kind === 'isolate' || condition.kind === 'subtree';
    const trees = mayFitOther[index] ?? [];
    const largest = condition.kind === 'resource' ? yield* largestAmount(explaining, probes, condition, trees) : null;
    figures.push({
      condition,
      alone: isBetween ? null : numberOf(alone[index]),
      left: numberOf(left[index]),
      without: numberOf(without[index]),
      largest,
    });
  }
  const numbers = [
    numberOf(fitting),
    ...figures.flatMap(({ alone, left, without, largest }) => [alone, left, without, largest]),
  ];
  return {
    trees: roots.length,
    pools: roots.filter((root) => treeSize(root) === 1 && sharing.isSharing(root)).length,
    fitting: numberOf(fitting),
    complete: nearest.isComplete() && !numbers.includes(undefined),
    conditions: figures,
    nearest: yield* nearest.list(),
  };
}

/** The present names and trees of the conditions. */
function namesNow({ classes, traits, byUuid }: Fleet, conditions: readonly Condition[]): KnownNames {
  const trees = conditions.flatMap((condition) => (condition.kind === 'tree' ? condition.uuids : []));
  const found = trees.flatMap((uuid) => {
    const provider = byUuid.get(uuid);
    return provider === undefined ? [] : [[uuid, provider] as const];
  });
  return { classes, traits, byUuid: new Map(found) };
}

/** A number of trees; unknown as soon as the verdict about one tree is unknown. */
type ConditionTally = { count: number; isKnown: boolean };

const newTally = (): ConditionTally => ({ count: 0, isKnown: true });

const numberOf = (tally: ConditionTally | undefined): number | undefined => (tally?.isKnown ? tally.count : undefined);

function count(tally: ConditionTally, verdict: Verdict): void {
  if (verdict === true) tally.count += 1;
  else if (verdict === undefined) tally.isKnown = false;
}

function countEach(tallies: readonly ConditionTally[], verdicts: readonly Verdict[]): void {
  for (let index = 0; index < tallies.length; index++) {
    const tally = tallies[index];
    if (tally !== undefined) count(tally, verdicts[index]);
  }
}

function noteTrees(lists: readonly Provider[][], { otherAmount }: TreeVerdicts, anchor: Provider): void {
  for (let index = 0; index < lists.length; index++) if (otherAmount[index] !== false) lists[index]?.push(anchor);
}

/** Caches the answer for the latest tree: many calls for one tree come before the next tree. */
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

/** The largest number of amounts that are tried at one tree. */
const mostAmounts = 50_000;

/** The largest number of different sums, taken by other groups of the same class, that are tried. */
const mostSums = 1000;

/**
 * The largest amount of a class that fits in some tree, if all other conditions stay; 0 if none fits.
 *
 * In a candidate, one provider gives the class to the group, and may give the same class to other groups. The amount is bounded
 * by the rest that the other groups leave, and by the units of the inventory. So only these bounds are tried: one for each
 * provider and each sum that other groups may take. A binary search is not possible: because of `step_size`, an amount may fit
 * although a smaller one does not.
 *
 * @param trees the trees that may fit; all others certainly do not
 * @returns undefined if it would take too much work
 */
function* largestAmount(
  { names, conditions, sharing, work, turns }: Explaining,
  probes: Probes,
  condition: ResourceCondition,
  trees: readonly Provider[],
): Pieces<number | undefined> {
  if (trees.length === 0) return 0;
  const resolved = resolveVariant(names, requestWith(conditions));
  const classId = names.classes.byName.get(condition.name)?.id;
  if (resolved === 'nothing' || classId === undefined) return 0;
  const taken = sumsOfOthers(resolved, condition.suffix, classId);
  if (taken === undefined) return undefined;

  // Trees with the largest bound first: mostly the first tree reaches its bound.
  const boundedTrees: { readonly anchor: Provider; readonly most: number }[] = [];
  for (const anchor of trees) {
    if (turns?.isOver(treeSize(anchor))) yield undefined;
    if (overspends(work, treeSize(anchor))) return undefined;
    let most = 0;
    for (const provider of [...treeOf(anchor), ...sharing.usableBy(anchor)]) {
      most = Math.max(most, largestBeside(provider, classId, 0));
    }
    if (most > 0) boundedTrees.push({ anchor, most });
  }
  boundedTrees.sort((a, b) => b.most - a.most);

  const probeFor = (amount: number) => probes.ofResolved(withAmount(resolved, condition.suffix, classId, amount));
  const known = new Map<number, ReturnType<typeof probeFor>>();
  let largest = 0;
  for (const { anchor, most } of boundedTrees) {
    if (most <= largest) break;
    const providers = [...treeOf(anchor), ...sharing.usableBy(anchor)];
    if (providers.length * taken.length > mostAmounts || overspends(work, providers.length * taken.length)) {
      return undefined;
    }
    if (turns?.isOver(providers.length * taken.length)) yield undefined;
    const amounts = new Set(providers.flatMap((provider) => taken.map((sum) => largestBeside(provider, classId, sum))));
    for (const amount of [...amounts].sort((a, b) => b - a)) {
      if (amount <= largest) break;
      if (turns?.isOver(roundsPerClockRead)) yield undefined;
      const probe = known.get(amount) ?? probeFor(amount);
      known.set(amount, probe);
      const verdict = probe(anchor);
      if (verdict === undefined) return undefined;
      if (verdict) largest = amount;
    }
  }
  return largest;
}

/**
 * The largest amount of a class that a provider can give, by capacity and units, in addition to a taken amount; 0 if none.
 */
function largestBeside(provider: Provider, classId: number, taken: number): number {
  const inventory = inventoryOf(provider, classId);
  if (inventory === undefined) return 0;
  const { fields, used } = inventory;
  const bound = Math.min(capacity(fields) - used, fields.maxUnit) - taken;
  const amount = bound - (bound % fields.stepSize);
  return amount >= Math.max(fields.minUnit, 1) ? amount : 0;
}

/** All sums that other groups may take of a class at the provider of a group; undefined if there are too many. */
function sumsOfOthers(
  { groups, isolate }: ResolvedRequest,
  suffix: string,
  classId: number,
): readonly number[] | undefined {
  const isGranular = suffix !== '';
  let sums: ReadonlySet<number> = new Set([0]);
  for (const group of groups) {
    if (group.suffix === suffix || (isolate && isGranular && group.granular)) continue;
    const amount = group.resources.find((resource) => resource.classId === classId)?.amount;
    if (amount === undefined) continue;
    sums = new Set([...sums].flatMap((sum) => [sum, sum + amount]));
    if (sums.size > mostSums) return undefined;
  }
  return [...sums];
}

const withAmount = (request: ResolvedRequest, suffix: string, classId: number, amount: number): ResolvedRequest => ({
  ...request,
  groups: request.groups.map((group) =>
    group.suffix === suffix
      ? {
          ...group,
          resources: group.resources.map((resource) => (resource.classId === classId ? { classId, amount } : resource)),
        }
      : group,
  ),
});
