import type { Provider } from '../fleet/provider.ts';
import type { Choice } from './candidate.ts';
import type { ResolvedRequest } from './resolve.ts';

/** The providers that the choices of a combination use, where others must keep away from them. */
export type Occupancy = {
  /** Whether a choice keeps away from whom it must. */
  readonly leavesRoomFor: (choice: Choice) => boolean;
  readonly add: (choice: Choice) => void;
  /** @param choice the last that was added */
  readonly remove: (choice: Choice) => void;
};

/** Most requests have few groups, and a short list is asked faster than a set. */
const mostInList = 8;

/**
 * Keeps who is used, so that a choice is judged without a look at all others: there may be hundreds, and hundreds that are
 * judged for each. With isolation no two granular groups use one provider; before 1.29 no two providers of one tree are used.
 */
export function occupancyOf({ isolate, nested }: Pick<ResolvedRequest, 'isolate' | 'nested'>): Occupancy {
  if (nested && !isolate) return unlimited;
  const few: Provider[] = [];
  const others = new Set<Provider>();
  const isIsolated = (provider: Provider): boolean =>
    few.includes(provider) || (others.size > 0 && others.has(provider));
  /** Of each tree the provider that is used, and by how many choices. */
  const ofTree = new Map<Provider, { readonly provider: Provider; count: number }>();
  const isAloneInTree = (provider: Provider): boolean => (ofTree.get(provider.root)?.provider ?? provider) === provider;
  return {
    leavesRoomFor(choice) {
      const [first] = choice.providers;
      if (isolate && first !== undefined && isIsolated(first)) return false;
      return nested || (usesEachTreeOnce(choice) && choice.providers.every(isAloneInTree));
    },
    add({ group, providers }) {
      const [first] = providers;
      if (isolate && group.granular && first !== undefined) {
        if (few.length < mostInList) few.push(first);
        else others.add(first);
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
        if (others.size === 0) few.pop();
        else others.delete(first);
      }
      if (nested) return;
      for (const provider of providers) {
        const used = ofTree.get(provider.root);
        if (used !== undefined && --used.count === 0) ofTree.delete(provider.root);
      }
    },
  };
}

const unlimited: Occupancy = { leavesRoomFor: () => true, add: () => {}, remove: () => {} };

/** Before 1.29 trees are invisible: no two providers of one. */
export function usesEachTreeOnce({ providers }: Choice): boolean {
  const used = new Set(providers);
  return new Set([...used].map(({ root }) => root)).size === used.size;
}
