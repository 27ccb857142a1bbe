import { hasRequiredTraits } from '../fleet/filters.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { ancestorsOf, type Provider } from '../fleet/provider.ts';
import { anchorsFor, type Order, walk } from './anchors.ts';
import type { Candidate, Choice } from './candidate.ts';
import { optionsByClass, satisfiesGroup } from './options.ts';
import type { CandidateRequest } from './request.ts';
import { type ResolvedGroup, type ResolvedRequest, resolveRequest } from './resolve.ts';
import { SharedUsage } from './shared_usage.ts';
import { type Sharing, sharingIn } from './sharing.ts';

export type SearchOptions = {
  readonly strategy: 'depth-first' | 'breadth-first';
  readonly randomize: boolean;
};

/**
 * Generates the allocation candidates of a request, one by one: whoever stops asking stops the search. No candidate comes
 * twice.
 *
 * @throws ApiError 400 for classes and traits that do not exist
 */
export function search(fleet: Fleet, request: CandidateRequest, options: SearchOptions): Iterable<Candidate> {
  const sharing = sharingIn(fleet);
  const resolved = resolveRequest(fleet, request, (group, rootTraits) =>
    anchorsFor(fleet, { groups: [group], rootTraits }, sharing, 'steady').some(
      (anchor) => !choicesFor(group, anchor, sharing.usableBy(anchor), 'steady').next().done,
    ),
  );
  if (resolved === 'nothing') return [];
  const order: Order = options.randomize ? 'random' : 'steady';
  // A random sample must not come from a few anchors only.
  const roundRobin = options.randomize || options.strategy === 'breadth-first';
  const perAnchor = anchorsFor(fleet, resolved, sharing, order).map((anchor) =>
    candidatesAt(anchor, resolved, sharing, order),
  );
  return withoutRepetition(roundRobin ? interleave(perAnchor) : chain(perAnchor), sharing);
}

function* chain<Item>(generators: Iterable<Iterable<Item>>): Generator<Item> {
  for (const generator of generators) yield* generator;
}

/** The first of each, then the second of each, ...: starting a generator only when it is its turn. */
function* interleave<Item>(generators: Iterable<Iterator<Item>>): Generator<Item> {
  let round: Iterable<Iterator<Item>> = generators;
  for (;;) {
    const left: Iterator<Item>[] = [];
    for (const generator of round) {
      const { done, value } = generator.next();
      if (done) continue;
      yield value;
      left.push(generator);
    }
    if (left.length === 0) return;
    round = left;
  }
}

/**
 * Two anchors give the same candidate only where nothing of it belongs to a tree alone: all its providers share. Only such
 * candidates need remembering.
 */
function* withoutRepetition(candidates: Iterable<Candidate>, sharing: Sharing): Generator<Candidate> {
  const seen = new Set<string>();
  for (const candidate of candidates) {
    if (candidate.every(({ providers }) => providers.every(sharing.isSharing))) {
      const key = candidate.map(({ providers }) => providers.map(({ id }) => id).join(',')).join(';');
      if (seen.has(key)) continue;
      seen.add(key);
    }
    yield candidate;
  }
}

/** All candidates of one anchor: the product of the groups' choices, cut as early as a combination is known to fail. */
function* candidatesAt(
  anchor: Provider,
  request: ResolvedRequest,
  sharing: Sharing,
  order: Order,
): Generator<Candidate> {
  const usable = sharing.usableBy(anchor);
  const choices: Choice[][] = [];
  const { groups } = request;
  for (const group of groups) {
    // Choices of the last group are generated as they are needed; the others' are listed, as they are met again and again.
    const generator = choicesFor(group, anchor, usable, order);
    if (groups.length === 1) {
      for (const choice of generator) if (isAcceptable([choice], request)) yield [choice];
      return;
    }
    const listed = [...generator];
    if (listed.length === 0) return;
    choices.push(listed);
  }
  const usage = new SharedUsage(groups);
  const chosen: Choice[] = [];
  const extend = function* (place: number): Generator<Candidate> {
    for (const choice of choices[place] ?? []) {
      if (request.isolate && choice.group.granular && isTaken(choice, chosen)) continue;
      if (!usage.take(choice)) continue;
      chosen.push(choice);
      if (satisfiesSubtreesUpTo(place, chosen, request)) {
        if (place < groups.length - 1) yield* extend(place + 1);
        else if (isAcceptable(chosen, request)) yield [...chosen];
      }
      chosen.pop();
      usage.giveBack(choice);
    }
  };
  yield* extend(0);
}

/** What one group may be satisfied with at an anchor. */
function* choicesFor(
  group: ResolvedGroup,
  anchor: Provider,
  usable: readonly Provider[],
  order: Order,
): Generator<Choice> {
  if (group.granular) {
    for (const providers of [anchor.tree, usable]) {
      for (const provider of walk(providers, order)) {
        if (satisfiesGroup(provider, group)) yield { group, providers: [provider] };
      }
    }
    return;
  }
  const options = optionsByClass(anchor, usable, group);
  if (options === undefined) return;
  for (const providers of product(options, order)) {
    const { required } = group.traits;
    if (required.length > 0) {
      const together = providers.length === 1 ? providers[0]?.traitIds : providers.flatMap(({ traitIds }) => traitIds);
      if (!hasRequiredTraits(together ?? [], required)) continue;
    }
    yield { group, providers };
  }
}

function* product<Item>(lists: readonly (readonly Item[])[], order: Order): Generator<readonly Item[]> {
  const chosen: Item[] = [];
  const extend = function* (place: number): Generator<readonly Item[]> {
    const list = lists[place];
    if (list === undefined) {
      yield [...chosen];
      return;
    }
    for (const item of walk(list, order)) {
      chosen.push(item);
      yield* extend(place + 1);
      chosen.pop();
    }
  };
  yield* extend(0);
}

const isTaken = (choice: Choice, chosen: readonly Choice[]): boolean =>
  chosen.some(({ group, providers }) => group.granular && providers[0] === choice.providers[0]);

/** Each set of groups that has become complete with this place must be below one of its own providers. */
function satisfiesSubtreesUpTo(place: number, chosen: readonly Choice[], request: ResolvedRequest): boolean {
  return request.sameSubtrees.every((places) => {
    if (Math.max(...places) !== place) return true;
    const providers = new Set(places.flatMap((each) => chosen[each]?.providers ?? []));
    return isOneSubtree(providers);
  });
}

function isOneSubtree(providers: ReadonlySet<Provider>): boolean {
  if (providers.size === 1) return true;
  const lines = [...providers].map((provider) => new Set([provider, ...ancestorsOf(provider)]));
  return [...providers].some((top) => lines.every((line) => line.has(top)));
}

/** The last checks of a whole candidate: one group alone may be in a same_subtree, too; before 1.29 trees are invisible. */
function isAcceptable(candidate: Candidate, request: ResolvedRequest): boolean {
  if (request.nested) return true;
  const used = new Set(candidate.flatMap(({ group, providers }) => (group.resources.length > 0 ? providers : [])));
  return new Set([...used].map(({ root }) => root)).size === used.size;
}
