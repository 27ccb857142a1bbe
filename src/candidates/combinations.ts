import { type ApiError, badRequest } from '../errors.ts';
import type { Provider } from '../fleet/provider.ts';
import type { Candidate, Choice } from './candidate.ts';
import { choiceAlone, choicesFor, isAlone } from './choices.ts';
import { occupancyOf, usesEachTreeOnce } from './occupancy.ts';
import type { Order } from './order.ts';
import { haveProspects } from './prospects.ts';
import type { ResolvedGroup, ResolvedRequest } from './resolve.ts';
import { classesOfSeveral, SharedUsage } from './shared_usage.ts';
import type { Sharing } from './sharing.ts';
import { choiceAt, choiceCount, isListed, listedAt, stepsAt } from './steps.ts';
import { canBeOneSubtree, isOneSubtree } from './subtrees.ts';

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

/** What is to be found at each anchor of a request. */
export function candidatesOf(request: ResolvedRequest, sharing: Sharing, order: Order): CandidatesAt {
  const { groups } = request;
  const [only] = groups;
  if (only === undefined || groups.length > 1) {
    const sharedClasses = classesOfSeveral(request);
    return (anchor) => combinationsAt(anchor, request, sharedClasses, sharing, order);
  }
  // Nothing to combine: half of all queries. And a flat host needs no generator either.
  return (anchor) => {
    if (only.granular || !isAlone(anchor, sharing.usableBy(anchor))) {
      return loneChoicesAt(anchor, only, request, sharing, order);
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
  order: Order,
): Generator<Candidate> {
  for (const choice of choicesFor(group, anchor, sharing.usableBy(anchor), order)) {
    if (nested || usesEachTreeOnce(choice)) yield [choice];
  }
}

/**
 * All candidates of one anchor: the product of the groups' choices, cut as soon as a combination is known to fail.
 *
 * The work for a candidate depends on the number of groups and providers, not on that of combinations, but for one thing:
 * groups that want unlike amounts of the same class may pass for satisfiable together when they are not (bin packing).
 *
 * @throws ApiError 400 where that takes too long
 */
function* combinationsAt(
  anchor: Provider,
  request: ResolvedRequest,
  sharedClasses: ReadonlySet<number>,
  sharing: Sharing,
  order: Order,
): Generator<Candidate> {
  const steps = stepsAt(anchor, request, sharing, order);
  if (steps === undefined) return;
  const { isolate } = request;
  const depths = request.groups.map((_, place) => steps.findIndex((step) => step.place === place));
  const subtrees = request.sameSubtrees.map((places) =>
    places.map((place) => depths[place] ?? 0).sort((a, b) => a - b),
  );
  const usage = new SharedUsage(sharedClasses);
  const occupancy = occupancyOf(request);
  const chosen: Choice[] = [];

  const isPossible = (choice: Choice): boolean => occupancy.leavesRoomFor(choice) && usage.fits(choice);
  const take = (choice: Choice): void => {
    chosen.push(choice);
    occupancy.add(choice);
    usage.take(choice);
  };
  const giveBack = (): boolean => {
    const last = chosen.pop();
    if (last === undefined) return false;
    occupancy.remove(last);
    usage.giveBack(last);
    return true;
  };

  const providersOf = (set: readonly number[]) => set.map((depth) => chosen[depth]?.providers ?? none);
  /** Whether each set that is complete with the last choice is one subtree. */
  const satisfiesSubtrees = (): boolean => {
    for (const set of subtrees) {
      if (set.at(-1) === chosen.length - 1 && !isOneSubtree(providersOf(set))) return false;
    }
    return true;
  };

  /** Of each set all who may be its top; made when they are first asked for, since most anchors need no look. */
  const topsOf: Set<Provider>[] = [];
  const possibleTops = (place: number, set: readonly number[]): ReadonlySet<Provider> => {
    const known =
      topsOf[place] ?? new Set(set.flatMap((depth) => listedAt(steps, depth).flatMap(({ providers }) => providers)));
    topsOf[place] = known;
    return known;
  };

  const hasProspects = (): boolean => {
    const open: (readonly Choice[] | undefined)[] = [];
    const openAt = (depth: number): readonly Choice[] => {
      const known = open[depth] ?? listedAt(steps, depth).filter(isPossible);
      open[depth] = known;
      return known;
    };
    // The cheaper one first: it often needs one of the lists only.
    for (const [place, set] of subtrees.entries()) {
      const alternatives = set
        .filter((depth) => depth >= chosen.length)
        .map((depth) => ({
          [Symbol.iterator]: () =>
            openAt(depth)
              .flatMap(({ providers }) => providers)
              .values(),
        }));
      if (!canBeOneSubtree(providersOf(set), alternatives, possibleTops(place, set))) return false;
    }
    const undecided = steps.flatMap(({ choices }, depth) =>
      depth >= chosen.length && isListed(choices) ? [openAt(depth)] : [],
    );
    return haveProspects(undecided, usage, isolate);
  };

  // Without recursion, since a candidate would pass through a generator for each group on its way out.
  const nextPlaces = steps.map(() => 0);
  if (steps.length >= manyGroups && !hasProspects()) return;
  let vain = 0;
  let nextLook = patience;
  let gap = 1;
  let looks = 0;
  const looksForProspects = steps.reduce((sum, step) => sum + choiceCount(step), 0);
  for (;;) {
    if (++looks > mostVainLooks) throw tooManyWays(anchor, steps.length);
    const depth = chosen.length;
    const choice = choiceAt(steps[depth], nextPlaces, depth);
    if (choice === undefined) {
      nextPlaces[depth] = 0;
      if (!giveBack()) return;
      continue;
    }
    if (!isPossible(choice)) continue;
    take(choice);
    if (subtrees.length > 0 && !satisfiesSubtrees()) {
      giveBack();
    } else if (chosen.length === steps.length) {
      vain = 0;
      nextLook = patience;
      gap = 1;
      looks = 0;
      // Every depth has its choice here.
      yield depths.map((each) => chosen[each] ?? choice);
      giveBack();
    } else if (++vain >= nextLook) {
      // A look costs as much as many steps, so while all is well it is taken ever more rarely. What was wrong since the look
      // before is all given up.
      looks += looksForProspects;
      const goesOn = hasProspects();
      gap = goesOn ? gap * 2 : 1;
      nextLook = vain + gap;
      if (goesOn) continue;
      do {
        looks += looksForProspects;
        nextPlaces[chosen.length] = 0;
        giveBack();
      } while (chosen.length > 0 && !hasProspects());
    }
  }
}

const tooManyWays = ({ uuid }: Provider, groups: number): ApiError =>
  badRequest(
    `The search for allocation candidates was given up at resource provider ${uuid}: ${groups} request groups can be shared ` +
      'out in too many ways there, of which very many do not fit. Ask for fewer groups, or for equal amounts of a resource class.',
  );
