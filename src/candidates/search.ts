import type { Fleet } from '../fleet/fleet.ts';
import { anchorsFor, type Order } from './anchors.ts';
import type { Candidate } from './candidate.ts';
import { choicesFor } from './choices.ts';
import { candidatesAt } from './combinations.ts';
import type { CandidateRequest } from './request.ts';
import { resolveRequest } from './resolve.ts';
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
  const candidates: Iterable<Candidate> = roundRobin ? interleave(perAnchor) : chain(perAnchor);
  return sharing.exists ? withoutRepetition(candidates, sharing) : candidates;
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
