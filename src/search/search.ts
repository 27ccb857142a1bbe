import type { Fleet } from '../fleet/model/fleet.ts';
import { type Provider, treeSize } from '../fleet/model/provider.ts';
import type { Pieces, Turns } from '../request/turns.ts';
import { type AllowedTrees, allTrees, anchorsFor, type Sharing, sharingIn, type Tally } from './anchors.ts';
import { type Candidate, choicesFor } from './choices.ts';
import { type CandidatesAt, candidatesOf } from './combinations.ts';
import { isMemberOf, withTraits } from './filters.ts';
import type { VisitOrder } from './order.ts';
import { type CandidateRequest, type Limits, overspends } from './request.ts';
import { type Resolution, type ResolvedGroup, type ResolvedRequest, resolveRequest } from './resolve.ts';
import { visitTrees } from './tree_visit.ts';

/** The order in which candidates come, and whether all are wanted. */
export type SearchOptions = {
  readonly strategy: 'depth-first' | 'breadth-first';
  readonly randomize: boolean;
  /** Whether the caller has a limit, so that it may take only some of the candidates. */
  readonly limited: boolean;
  /** The trees to search; absent for all trees. */
  readonly allowed?: AllowedTrees;
  /** The turns after which the search pauses; without turns the search does not pause. */
  readonly turns?: Turns | undefined;
};

/** A search for the allocation candidates of a request. */
type Search = {
  /**
   * The candidates, one by one: the search stops when the caller takes no more. No candidate comes twice. Where a turn is over,
   * undefined comes instead.
   */
  readonly candidates: Iterable<Candidate | undefined>;
  /**
   * Lists the trees that are not visited yet. Call it before the first `await` during the search, and hold the snapshot
   * (src/fleet/model/held_snapshots.ts): then all candidates are of this snapshot.
   */
  settle(): void;
};

/** Searches for the allocation candidates of a request whose names were looked up. */
export function openSearch(fleet: Fleet, resolved: Resolution, options: SearchOptions): Search {
  if (resolved === 'nothing') return { candidates: [], settle: () => {} };
  const { randomize, limited, strategy, allowed = allTrees, turns } = options;
  const sharing = sharingIn(fleet);
  const visitOrder: VisitOrder = randomize ? (limited ? 'random' : 'rotated') : 'steady';
  // A random sample must not come from a few anchors only.
  const roundRobin = resolved.order === undefined && ((randomize && limited) || strategy === 'breadth-first');
  const { anchors, within, tally } = visitTrees(fleet, resolved, sharing, { ties: visitOrder, allowed });
  const found = Iterator.from(anchors);
  const listed: Provider[] = [];
  let next = 0;
  const nextAnchor = (): Provider | undefined => {
    const { done, value } = found.next();
    return done ? listed[next++] : value;
  };
  const candidatesAt = candidatesOf(resolved, sharing, within, { turns });
  const pace: Pace = { turns, anchors: resolved.groups.length === 1 ? anchorsPerQuestion : 1 };
  const candidates = (roundRobin ? interleave : chain)(nextAnchor, candidatesAt, tally, pace);
  return {
    candidates: sharing.exists ? withoutRepetition(candidates, sharing) : candidates,
    settle: () => {
      for (const anchor of found) listed.push(anchor);
    },
  };
}

/** The root of the next tree: first the roots that are found one by one, then the roots that `settle` listed. */
type NextAnchor = () => Provider | undefined;

type FoundCandidates = Generator<Candidate | undefined>;

/** The turns of a search, and after how many anchors the search checks whether a turn is over. */
type Pace = { readonly turns: Turns | undefined; readonly anchors: number };

/** With one group an anchor takes less time than the check whether a turn is over. */
const anchorsPerQuestion = 16;

/**
 * Looks up the names of a request.
 *
 * @param limits if the budget is used up here, the search notices that later. The check whether an unknown name is an error may take
 *   long, so it pauses after the turns
 * @throws ApiError 400 for a name that does not exist, if all groups before it can be satisfied
 */
export const resolveForSearch = (
  fleet: Fleet,
  request: CandidateRequest,
  sharing: Sharing = sharingIn(fleet),
  limits: Limits = {},
): Pieces<Resolution> =>
  resolveRequest(fleet, request, {
    hasRoot: (rootTraits) => fleet.roots.some(withTraits(rootTraits)),
    hasMember: (memberOf) => hasMember(fleet, memberOf, limits),
    isSatisfiable: (group, rootTraits) => isSatisfiable(fleet, group, rootTraits, sharing, limits),
    numberOf: fleet.numberOf,
  });

function* hasMember(
  { inAggregate }: Fleet,
  memberOf: ResolvedGroup['memberOf'],
  { work, turns }: Limits,
): Pieces<boolean> {
  for (const aggregate of inAggregate.fewest(memberOf).keys) {
    for (const provider of inAggregate.of(aggregate)) {
      if (isMemberOf(provider, memberOf) || overspends(work, memberOf.length)) return true;
      if (turns?.isOver(memberOf.length)) yield undefined;
    }
  }
  return false;
}

function* isSatisfiable(
  fleet: Fleet,
  group: ResolvedGroup,
  rootTraits: ResolvedRequest['rootTraits'],
  sharing: Sharing,
  { work, turns }: Limits,
): Pieces<boolean> {
  for (const anchor of anchorsFor(fleet, { groups: [group], rootTraits }, sharing, 'steady')) {
    for (const choice of choicesFor(group, anchor, sharing.usableBy(anchor), 'steady', { work, turns })) {
      if (choice !== undefined) return true;
      yield undefined;
    }
    if (overspends(work, treeSize(anchor))) return true;
    if (turns?.isOver(treeSize(anchor))) yield undefined;
  }
  return false;
}

function* chain(
  nextAnchor: NextAnchor,
  candidatesAt: CandidatesAt,
  tally: Tally,
  { turns, anchors: perQuestion }: Pace,
): FoundCandidates {
  let visited = 0;
  for (let anchor = nextAnchor(); anchor !== undefined; anchor = nextAnchor()) {
    visited += 1;
    if (visited % perQuestion === 0 && turns?.isOver(perQuestion)) yield undefined;
    const candidates = candidatesAt(anchor);
    // An array has one candidate at most. Iterating over it would take longer than finding the candidate.
    if (!Array.isArray(candidates)) {
      let found = 0;
      for (const candidate of candidates) {
        if (candidate !== undefined && found++ === 0) tally.fitting += 1;
        yield candidate;
      }
    } else if (candidates.length > 0) {
      tally.fitting += 1;
      yield candidates[0];
    }
  }
}

/**
 * The first candidate of each anchor, then the second of each, and so on: round by round. An anchor is searched only when
 * a round comes to it.
 */
function* interleave(
  nextAnchor: NextAnchor,
  candidatesAt: CandidatesAt,
  tally: Tally,
  { turns, anchors: perQuestion }: Pace,
): FoundCandidates {
  let left: Iterator<Candidate | undefined>[] = [];
  let visited = 0;
  for (let anchor = nextAnchor(); anchor !== undefined; anchor = nextAnchor()) {
    visited += 1;
    if (visited % perQuestion === 0 && turns?.isOver(perQuestion)) yield undefined;
    const candidates = candidatesAt(anchor);
    if (Array.isArray(candidates)) {
      // An array has one candidate at most, so the anchor gets no second turn.
      if (candidates.length === 0) continue;
      tally.fitting += 1;
      yield candidates[0];
      continue;
    }
    const iterator = candidates[Symbol.iterator]();
    if (!(yield* nextOf(iterator))) continue;
    tally.fitting += 1;
    left.push(iterator);
  }
  while (left.length > 0) {
    const round = left;
    left = [];
    for (const iterator of round) if (yield* nextOf(iterator)) left.push(iterator);
  }
}

/** The next candidate of an anchor, after the pauses before it. @returns false if there is none */
function* nextOf(candidates: Iterator<Candidate | undefined>): Generator<Candidate | undefined, boolean> {
  for (;;) {
    const { done, value } = candidates.next();
    if (done) return false;
    yield value;
    if (value !== undefined) return true;
  }
}

/**
 * Leaves out repeated candidates. Two anchors have the same candidate only if all its providers are sharing providers, so only
 * such candidates are remembered.
 */
function* withoutRepetition(candidates: Iterable<Candidate | undefined>, sharing: Sharing): FoundCandidates {
  const seen = new Set<string>();
  for (const candidate of candidates) {
    if (candidate?.every(({ providers }) => providers.every(sharing.isSharing))) {
      const key = candidate.map(({ providers }) => providers.map(({ id }) => id).join(',')).join(';');
      if (seen.has(key)) continue;
      seen.add(key);
    }
    yield candidate;
  }
}
