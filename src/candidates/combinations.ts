import type { Provider } from '../fleet/provider.ts';
import { type ApiError, badRequest } from '../rest/errors.ts';
import type { Candidate } from './candidate.ts';
import { choiceAlone, choicesFor, isAlone } from './choices.ts';
import { type Combination, giveBack, isPossible, satisfiesSubtrees, take } from './combination.ts';
import { occupancyOf, usesEachTreeOnce } from './occupancy.ts';
import type { ProviderOrder } from './order.ts';
import { hasProspects } from './prospects.ts';
import type { ResolvedGroup, ResolvedRequest } from './resolve.ts';
import { classesOfSeveral, SharedUsage } from './shared_usage.ts';
import type { Sharing } from './sharing.ts';
import { choiceAt, depthsOf, type Step, stepsAt } from './steps.ts';
import { isSpent, type Work } from './work.ts';

/** After this many steps in vain, a combination is looked at for whether it has prospects before it is taken further. */
const patience = 32;

/**
 * After so many looks at choices in vain an anchor is given up, with an error: sharing out unlike amounts is bin packing, which
 * may take longer than anybody waits, and nobody else is served meanwhile. It is a few seconds.
 */
const mostVainLooks = 50_000_000;

/** From so many groups on, an anchor is looked at before the first step: eleven groups for ten devices are refused at once. */
const manyGroups = 6;

/** Whoever knows all candidates of an anchor, which are generated. */
export type CandidatesAt = (anchor: Provider) => Iterable<Candidate>;

/**
 * What is to be found at each anchor of a request.
 *
 * @param work a bound of the caller: once it is used up an anchor is given up without an error, and `work` tells so
 */
export function candidatesOf(
  request: ResolvedRequest,
  sharing: Sharing,
  order: ProviderOrder,
  work?: Work,
): CandidatesAt {
  const { groups } = request;
  const [only] = groups;
  if (only === undefined || groups.length > 1) {
    const sharedClasses = classesOfSeveral(request);
    return (anchor) => {
      const steps = stepsAt(anchor, request, sharing, order, work);
      return steps === undefined ? none : combinationsOf(anchor, steps, request, sharedClasses, work);
    };
  }
  // Nothing to combine: half of all queries. And a flat host needs no generator either.
  return (anchor) => {
    if (only.granular || !isAlone(anchor, sharing.usableBy(anchor))) {
      return loneChoicesAt(anchor, only, request, sharing, order, work);
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
  work: Work | undefined,
): Generator<Candidate> {
  for (const choice of choicesFor(group, anchor, sharing.usableBy(anchor), order, work)) {
    if (nested || usesEachTreeOnce(choice)) yield [choice];
  }
}

/**
 * All candidates of one anchor: the product of the groups' choices, cut as soon as a combination is known to fail.
 *
 * The work for a candidate depends on the number of groups and providers, not on that of combinations, but for one thing:
 * groups that want unlike amounts of the same class may pass for satisfiable together when they are not (bin packing).
 *
 * Most anchors are left after their first candidate, so what a first one does not need is not made.
 *
 * @throws ApiError 400 where that takes too long
 */
function* combinationsOf(
  anchor: Provider,
  steps: readonly Step[],
  request: ResolvedRequest,
  sharedClasses: ReadonlySet<number>,
  work: Work | undefined,
): Generator<Candidate> {
  const depths = depthsOf(steps);
  const combination: Combination = {
    steps,
    chosen: [],
    isolate: request.isolate,
    subtrees: request.sameSubtrees.map((places) => places.map((place) => depths[place] ?? 0).sort((a, b) => a - b)),
    usage: new SharedUsage(sharedClasses),
    occupancy: occupancyOf(request),
    tops: [],
  };
  const { chosen } = combination;

  // Without recursion, since a candidate would pass through a generator for each group on its way out.
  const nextPlaces = steps.map(() => 0);
  const looksForProspects = steps.reduce((sum, { providers }) => sum + providers.length, 0);
  if (steps.length >= manyGroups) {
    if (work !== undefined && isSpent(work, looksForProspects * steps.length)) return;
    if (!hasProspects(combination)) return;
  }
  let vain = 0;
  let nextLook = patience;
  let gap = 1;
  let looks = 0;
  for (;;) {
    if (++looks > mostVainLooks) throw tooManyWays(anchor, steps.length);
    if (work !== undefined && isSpent(work, 1)) return;
    const depth = chosen.length;
    const choice = choiceAt(steps[depth], nextPlaces, depth);
    if (choice === undefined) {
      nextPlaces[depth] = 0;
      if (!giveBack(combination)) return;
      continue;
    }
    if (!isPossible(combination, choice)) continue;
    take(combination, choice);
    if (!satisfiesSubtrees(combination)) {
      giveBack(combination);
    } else if (chosen.length === steps.length) {
      vain = 0;
      nextLook = patience;
      gap = 1;
      looks = 0;
      // Every depth has its choice here.
      yield depths.map((each) => chosen[each] ?? choice);
      giveBack(combination);
    } else if (++vain >= nextLook) {
      // A look costs as much as many steps, so while all is well it is taken ever more rarely. What was wrong since the look
      // before is all given up.
      looks += looksForProspects;
      if (work !== undefined && isSpent(work, looksForProspects * steps.length)) return;
      const goesOn = hasProspects(combination);
      gap = goesOn ? gap * 2 : 1;
      nextLook = vain + gap;
      if (goesOn) continue;
      do {
        looks += looksForProspects;
        if (work !== undefined && isSpent(work, looksForProspects * steps.length)) return;
        nextPlaces[chosen.length] = 0;
        giveBack(combination);
      } while (chosen.length > 0 && !hasProspects(combination));
    }
  }
}

const tooManyWays = ({ uuid }: Provider, groups: number): ApiError =>
  badRequest(
    `The search for allocation candidates was given up at resource provider ${uuid}: ${groups} request groups can be shared ` +
      'out in too many ways there, of which very many do not fit. Ask for fewer groups, or for equal amounts of a resource class.',
  );
