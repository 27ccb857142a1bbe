import { satisfiesTraits } from '../../fleet/filters.ts';
import { type Provider, treeSize } from '../../fleet/provider.ts';
import { type CandidatesAt, candidatesOf } from '../combinations.ts';
import { type Condition, requestWith } from '../conditions.ts';
import { looksToResolve } from '../place.ts';
import { type KnownNames, type ResolvedRequest, resolveVariant } from '../resolve.ts';
import type { Sharing } from '../sharing.ts';
import { overspends, type Work } from '../work.ts';

/** The answer to a question; undefined if it would take too much work. */
export type Verdict = boolean | undefined;

/** Whether a tree fits a variant of a query. */
export type Probe = (anchor: Provider) => Verdict;

/** How many looks one search at one tree may take, so that a hard tree does not use up the budget of the others. */
const mostLooksAtTree = 200_000;

/** Probes that run the search for candidates, and share one budget. */
export type Probes = {
  readonly work: Work;
  /** A probe for the request that has some conditions. These are listed at the first use of the probe. */
  of(conditions: () => readonly Condition[]): Probe;
  /** The same for a request whose names are already looked up. */
  ofResolved(request: ResolvedRequest): Probe;
};

/** @param work the budget of all probes together */
export function createProbes(names: KnownNames, sharing: Sharing, work: Work): Probes {
  const atTree: Work = { looks: 0 };
  const ofResolved = (request: ResolvedRequest): Probe => {
    if (request.groups.length === 0) return () => true;
    const candidatesAt = candidatesOf(request, sharing, 'steady', { work: atTree });
    return (anchor) => {
      if (!satisfiesTraits(anchor.traitIds, request.rootTraits)) return false;
      const providers = treeSize(anchor) + sharing.usableBy(anchor).length;
      if (overspends(work, request.groups.length * providers)) return undefined;
      const granted = Math.min(work.looks, mostLooksAtTree);
      atTree.looks = granted;
      const found = hasFirst(candidatesAt, anchor);
      work.looks -= granted - atTree.looks;
      return found || atTree.looks >= 0 ? found : undefined;
    };
  };
  return {
    work,
    ofResolved,
    of: (conditions) => {
      let probe: Probe | undefined;
      return (anchor) => {
        if (probe === undefined) {
          if (work.looks < 0) return undefined;
          const wanted = conditions();
          if (overspends(work, wanted.length * looksToResolve)) return undefined;
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
