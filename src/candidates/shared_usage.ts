import { inventoryOf, type Provider } from '../fleet/provider.ts';
import { usableOf } from '../placement/inventory.ts';
import { type Choice, providerOf } from './candidate.ts';
import type { ResolvedRequest } from './resolve.ts';

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

  /** Whether the inventories have enough for a choice beside those that were taken. */
  fits(choice: Choice): boolean {
    if (this.classes.size === 0) return true;
    const { resources } = choice.group;
    for (let place = 0; place < resources.length; place++) {
      const resource = resources[place];
      if (resource === undefined || !this.classes.has(resource.classId)) continue;
      const provider = providerOf(choice, place);
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
    for (const [place, { classId, amount }] of choice.group.resources.entries()) {
      const provider = providerOf(choice, place);
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
