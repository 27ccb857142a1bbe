import { satisfiesTraits } from '../../fleet/filters.ts';
import type { Fleet } from '../../fleet/fleet.ts';
import type { Provider } from '../../fleet/provider.ts';
import { type CandidatesAt, candidatesOf } from '../combinations.ts';
import { type Condition, requestWith } from '../conditions.ts';
import { type ResolvedRequest, resolveVariant } from '../resolve.ts';
import type { Sharing } from '../sharing.ts';
import { isSpent, type Work } from '../work.ts';

/** Whether something is so; undefined where finding out would take too much work. */
export type Verdict = boolean | undefined;

/** Whether a tree fits a variant of a query. */
export type Probe = (anchor: Provider) => Verdict;

/** At one tree a search for one variant gives up after so many looks, so that one hard tree leaves work for the others. */
const mostLooksAtTree = 300_000;

/** What looking up the names of one condition costs, in looks. */
const looksToResolve = 10;

/** Asks the search whether trees fit: all probes share one bound of work. */
export type Probes = {
  readonly work: Work;
  /** For the request of some conditions, which are listed when a tree is first asked about. */
  of(conditions: () => readonly Condition[]): Probe;
  /** The same for a request whose names are looked up. */
  ofResolved(request: ResolvedRequest): Probe;
};

/** @param work how many looks all probes may take together; what a look takes is some 10 ns */
export function createProbes(fleet: Fleet, sharing: Sharing, work: Work): Probes {
  const atTree: Work = { looks: 0 };
  const ofResolved = (request: ResolvedRequest): Probe => {
    if (request.groups.length === 0) return () => true;
    const candidatesAt = candidatesOf(request, sharing, 'steady', atTree);
    return (anchor) => {
      if (!satisfiesTraits(anchor.traitIds, request.rootTraits)) return false;
      const providers = anchor.tree.length + sharing.usableBy(anchor).length;
      if (isSpent(work, request.groups.length * providers)) return undefined;
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
          const wanted = conditions();
          if (isSpent(work, wanted.length * looksToResolve)) return undefined;
          const resolved = resolveVariant(fleet, requestWith(wanted));
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
