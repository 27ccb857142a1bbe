import { type Provider, treeSize } from '../fleet/model/provider.ts';
import { type ApiError, badRequest } from '../request/errors.ts';
import type { Sharing } from './anchors.ts';
import { type Candidate, choiceAlone, choicesFor, isAlone } from './choices.ts';
import { type Combination, giveBack, isDeadEnd, isPossible, satisfiesSubtrees, take } from './combination.ts';
import { choiceAt, depthsOf, type Level, levelsAt, levelsInPieces } from './levels.ts';
import { classesOfSeveral, occupancyOf, SharedUsage, usesEachTreeOnce } from './occupancy.ts';
import type { ProviderOrder } from './order.ts';
import { type Limits, overspends } from './request.ts';
import type { ResolvedGroup, ResolvedRequest } from './resolve.ts';

/**
 * After this number of steps without a candidate, a few seconds, the search at an anchor fails with an error. To
 * distribute different amounts of a class is bin packing, which may take very long. The process serves no other
 * request during a bin packing.
 */
const mostSteps = 50_000_000;

/**
 * From this number of groups on, the first check comes before the first step: eleven groups for ten devices are refused
 * at once.
 */
const manyGroups = 6;

/**
 * Finds all candidates of an anchor. An array has one candidate at most; a generator yields them one by one, and yields undefined where
 * a turn is over.
 */
export type CandidatesAt = (anchor: Provider) => Iterable<Candidate | undefined>;

/**
 * The search for the candidates of a request, for any anchor.
 *
 * @param limits when the work is used up, the search at an anchor ends without an error, and the work is below zero
 */
export function candidatesOf(
  request: ResolvedRequest,
  sharing: Sharing,
  order: ProviderOrder,
  limits: Limits,
): CandidatesAt {
  const { groups } = request;
  const [only] = groups;
  if (only === undefined || groups.length > 1) {
    const sharedClasses = classesOfSeveral(request);
    return (anchor) => {
      if (limits.turns !== undefined && groups.length * treeSize(anchor) > mostAtOnce) {
        return combinationsInPieces(anchor, request, sharing, order, sharedClasses, limits);
      }
      const levels = levelsAt(anchor, request, sharing, order, limits);
      return levels === undefined ? none : combinationsOf(anchor, levels, request, sharedClasses, limits);
    };
  }
  // With one group there is nothing to combine: half of all queries. For a flat host no generator is needed either.
  return (anchor) => {
    if (only.granular || !isAlone(anchor, sharing.usableBy(anchor))) {
      return loneChoicesAt(anchor, only, request, sharing, order, limits);
    }
    const choice = choiceAlone(only, anchor);
    return choice === undefined ? none : [[choice]];
  };
}

const none: readonly never[] = [];

function* loneChoicesAt(
  anchor: Provider,
  group: ResolvedGroup,
  { nested }: ResolvedRequest,
  sharing: Sharing,
  order: ProviderOrder,
  limits: Limits,
): Generator<Candidate | undefined> {
  for (const choice of choicesFor(group, anchor, sharing.usableBy(anchor), order, limits)) {
    if (choice === undefined) yield undefined;
    else if (nested || usesEachTreeOnce(choice)) yield [choice];
  }
}

/** For so many groups times providers, some milliseconds, the levels at an anchor are found at once. */
const mostAtOnce = 50_000;

function* combinationsInPieces(
  anchor: Provider,
  request: ResolvedRequest,
  sharing: Sharing,
  order: ProviderOrder,
  sharedClasses: ReadonlySet<number>,
  limits: Limits,
): Generator<Candidate | undefined> {
  const levels = yield* levelsInPieces(anchor, request, sharing, order, limits);
  if (levels !== undefined) yield* combinationsOf(anchor, levels, request, sharedClasses, limits);
}

/**
 * All candidates of one anchor: all combinations of one choice for each group, made step by step. A combination that
 * cannot be completed is dropped as soon as that is noticed.
 *
 * The work for a candidate depends on the number of groups and providers, and not on the number of combinations. There
 * is one exception: if groups ask for different amounts of the same class, it may go unnoticed that there is not enough
 * for all of them (bin packing).
 *
 * For most anchors the caller takes only the first candidate, so nothing is computed that the first one does not need.
 *
 * @throws ApiError 400 if it takes too long
 */
function* combinationsOf(
  anchor: Provider,
  levels: readonly Level[],
  request: ResolvedRequest,
  sharedClasses: ReadonlySet<number>,
  { work, turns }: Limits,
): Generator<Candidate | undefined> {
  const depths = depthsOf(levels);
  const combination: Combination = {
    levels,
    chosen: [],
    isolate: request.isolate,
    subtrees: request.sameSubtrees.map((indexes) => indexes.map((index) => depths[index] ?? 0).sort((a, b) => a - b)),
    usage: new SharedUsage(sharedClasses),
    occupancy: occupancyOf(request),
    tops: [],
  };
  const { chosen } = combination;

  // A loop, since with recursion each candidate would pass through one generator for each group.
  const nextIndexes = levels.map(() => 0);
  const stepsForCheck = levels.reduce((sum, { providers }) => sum + providers.length, 0);
  if (levels.length >= manyGroups) {
    if (overspends(work, stepsForCheck * levels.length)) return;
    if (yield* isDeadEnd(combination, turns)) return;
  }
  const pace = openCheckPace();
  const roundsOfStep = 1 + combination.subtrees.reduce((sum, depths) => sum + depths.length, 0);
  let stepsSinceCandidate = 0;
  for (;;) {
    if (++stepsSinceCandidate > mostSteps) throw tooManyWays(anchor, levels.length);
    if (overspends(work, 1)) return;
    if (turns?.isOver(roundsOfStep)) yield undefined;
    const depth = chosen.length;
    const choice = choiceAt(levels[depth], nextIndexes, depth);
    if (choice === undefined) {
      nextIndexes[depth] = 0;
      if (!giveBack(combination)) return;
      continue;
    }
    if (choice === 'pause') {
      yield undefined;
      continue;
    }
    if (!isPossible(combination, choice)) continue;
    take(combination, choice);
    if (!satisfiesSubtrees(combination)) {
      giveBack(combination);
    } else if (chosen.length === levels.length) {
      pace.startAnew();
      stepsSinceCandidate = 0;
      // Every depth has a choice here.
      yield depths.map((each) => chosen[each] ?? choice);
      giveBack(combination);
    } else if (pace.step()) {
      stepsSinceCandidate += stepsForCheck;
      if (overspends(work, stepsForCheck * levels.length)) return;
      const mustGoBack = yield* isDeadEnd(combination, turns);
      pace.checked(mustGoBack);
      if (!mustGoBack) continue;
      // Choices are removed until the remaining ones are not a dead end.
      do {
        stepsSinceCandidate += stepsForCheck;
        if (overspends(work, stepsForCheck * levels.length)) return;
        nextIndexes[chosen.length] = 0;
        giveBack(combination);
      } while (chosen.length > 0 && (yield* isDeadEnd(combination, turns)));
    }
  }
}

const tooManyWays = ({ uuid }: Provider, groups: number): ApiError =>
  badRequest(
    `The search for allocation candidates was stopped at resource provider ${uuid}: ${groups} request groups can be shared ` +
      'out in too many ways there, of which very many do not fit. Ask for fewer groups, or for equal amounts of a resource class.',
  );

/** The number of steps without a candidate after which the first check is due. */
const stepsBeforeCheck = 32;

/**
 * Says when a search checks whether it is at a dead end. One check takes as long as many steps. So after each check
 * that finds no dead end, twice as many steps pass before the next one.
 */
type CheckPace = {
  /** Counts a step that led to no candidate. @returns whether a check is due */
  step(): boolean;
  /** Takes note of a check. */
  checked(isDeadEnd: boolean): void;
  /** A candidate was found: the count restarts. */
  startAnew(): void;
};

/** The pace of a search that begins. */
function openCheckPace(): CheckPace {
  let steps = 0;
  let next = stepsBeforeCheck;
  let gap = 1;
  return {
    step: () => {
      steps += 1;
      return steps >= next;
    },
    checked: (isDeadEnd) => {
      gap = isDeadEnd ? 1 : gap * 2;
      next = steps + gap;
    },
    startAnew: () => {
      steps = 0;
      next = stepsBeforeCheck;
      gap = 1;
    },
  };
}
