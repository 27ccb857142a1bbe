import type { Provider } from '../fleet/provider.ts';
import type { Choice } from './candidate.ts';
import type { ResolvedRequest } from './resolve.ts';

/** The providers that the choices of a combination use, as far as further choices must use other ones. */
export type Occupancy = {
  /** Whether a choice may be added to those of the combination. */
  readonly allows: (choice: Choice) => boolean;
  readonly add: (choice: Choice) => void;
  /** @param choice the last that was added */
  readonly remove: (choice: Choice) => void;
};

/**
 * The first providers are in a list, which is searched faster than a set while it is short. Most requests have few
 * groups.
 */
const mostInList = 8;

/**
 * With isolation, two granular groups must not use the same provider. Before 1.29, a candidate must not use two
 * providers of one tree. The used providers are kept, so that a choice need not be compared with all others: there may
 * be hundreds of groups, and hundreds of choices for each.
 */
export function occupancyOf({ isolate, nested }: Pick<ResolvedRequest, 'isolate' | 'nested'>): Occupancy {
  if (nested && !isolate) return unlimited;
  const firstUsed: Provider[] = [];
  const moreUsed = new Set<Provider>();
  const isIsolated = (provider: Provider): boolean =>
    firstUsed.includes(provider) || (moreUsed.size > 0 && moreUsed.has(provider));
  /** By the root of each used tree: the provider that is used, and by how many choices. */
  const ofTree = new Map<Provider, { readonly provider: Provider; count: number }>();
  const isAloneInTree = (provider: Provider): boolean => (ofTree.get(provider.root)?.provider ?? provider) === provider;
  return {
    allows(choice) {
      const [first] = choice.providers;
      if (isolate && first !== undefined && isIsolated(first)) return false;
      return nested || (usesEachTreeOnce(choice) && choice.providers.every(isAloneInTree));
    },
    add({ group, providers }) {
      const [first] = providers;
      if (isolate && group.granular && first !== undefined) {
        if (firstUsed.length < mostInList) firstUsed.push(first);
        else moreUsed.add(first);
      }
      if (nested) return;
      for (const provider of providers) {
        const used = ofTree.get(provider.root);
        if (used === undefined) ofTree.set(provider.root, { provider, count: 1 });
        else used.count += 1;
      }
    },
    remove({ group, providers }) {
      const [first] = providers;
      if (isolate && group.granular && first !== undefined) {
        if (moreUsed.size === 0) firstUsed.pop();
        else moreUsed.delete(first);
      }
      if (nested) return;
      for (const provider of providers) {
        const used = ofTree.get(provider.root);
        if (used !== undefined && --used.count === 0) ofTree.delete(provider.root);
      }
    },
  };
}

const unlimited: Occupancy = { allows: () => true, add: () => {}, remove: () => {} };

/** Whether a choice has no two providers of one tree: before 1.29 clients do not know trees. */
export function usesEachTreeOnce({ providers }: Choice): boolean {
  const used = new Set(providers);
  return new Set([...used].map(({ root }) => root)).size === used.size;
}
