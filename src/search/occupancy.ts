import { inventoryOf, type Provider } from '../fleet/model/provider.ts';
import { usableOf } from '../placement/inventory.ts';
import { type Choice, providerOf } from './choices.ts';
import type { ResolvedRequest } from './resolve.ts';

/** The providers that the choices of a combination use, and that further choices must not use. */
export type Occupancy = {
  /** Whether a choice may be added to the combination. */
  readonly allows: (choice: Choice) => boolean;
  readonly add: (choice: Choice) => void;
  /** @param choice the choice that was added last */
  readonly remove: (choice: Choice) => void;
};

/**
 * The first providers are in a list, which is searched faster than a set while it is short. Most requests have few
 * groups.
 */
const mostInList = 8;

/**
 * With isolation, two granular groups must not use the same provider. Before 1.29, a candidate must not use two
 * providers of one tree. The used providers are stored, so that a choice need not be compared with all other choices: there may
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

/**
 * The classes that two groups may take from the same provider. With isolation one of the two is the group without
 * suffix, since granular groups then have different providers.
 */
export function classesOfSeveral({ groups, isolate }: ResolvedRequest): ReadonlySet<number> {
  const asking = Map.groupBy(
    groups.flatMap(({ granular, resources }) => resources.map(({ classId }) => ({ classId, granular }))),
    ({ classId }) => classId,
  );
  const shared = [...asking].filter(
    ([, those]) => those.length > 1 && !(isolate && those.every(({ granular }) => granular)),
  );
  return new Set(shared.map(([classId]) => classId));
}

/** Counts how much the chosen groups take of each inventory from which several groups may take. */
export class SharedUsage {
  /** The classes that several groups may take from the same provider. */
  readonly classes: ReadonlySet<number>;
  /** Created when first needed: most requests have no such class. */
  #taken: Map<Provider, Map<number, number>> | undefined;

  constructor(classes: ReadonlySet<number>) {
    this.classes = classes;
  }

  /** Whether the inventories have enough for a choice in addition to the chosen ones. */
  fits(choice: Choice): boolean {
    if (this.classes.size === 0) return true;
    const { resources } = choice.group;
    for (let index = 0; index < resources.length; index++) {
      const resource = resources[index];
      if (resource === undefined || !this.classes.has(resource.classId)) continue;
      const provider = providerOf(choice, index);
      if (provider !== undefined && resource.amount > this.left(provider, resource.classId)) return false;
    }
    return true;
  }

  take(choice: Choice): void {
    if (this.classes.size > 0) this.#add(choice, 1);
  }

  giveBack(choice: Choice): void {
    if (this.classes.size > 0) this.#add(choice, -1);
  }

  /**
   * How much of a class the groups may still take from a provider. `max_unit` bounds the sum of all groups of a
   * candidate.
   */
  left(provider: Provider, classId: number): number {
    const inventory = inventoryOf(provider, classId);
    if (inventory === undefined) return 0;
    const taken = this.#taken?.get(provider)?.get(classId) ?? 0;
    return Math.min(Math.floor(usableOf(inventory.fields)) - inventory.used, inventory.fields.maxUnit) - taken;
  }

  #add(choice: Choice, sign: 1 | -1): void {
    for (const [index, { classId, amount }] of choice.group.resources.entries()) {
      const provider = providerOf(choice, index);
      if (provider === undefined || !this.classes.has(classId)) continue;
      this.#taken ??= new Map();
      let taken = this.#taken.get(provider);
      if (taken === undefined) {
        taken = new Map();
        this.#taken.set(provider, taken);
      }
      taken.set(classId, (taken.get(classId) ?? 0) + sign * amount);
    }
  }
}
