import { inventoryOf, type Provider } from '../fleet/provider.ts';
import { capacity } from '../placement/inventory.ts';
import { type Choice, providerOf } from './candidate.ts';
import type { ResolvedGroup } from './resolve.ts';

/** Keeps what several groups together take of the inventories that more than one of them asks for. */
export class SharedUsage {
  /** The classes that more than one group asks for. */
  readonly classes: ReadonlySet<number>;
  readonly #taken = new Map<Provider, Map<number, number>>();

  constructor(groups: readonly ResolvedGroup[]) {
    const all = groups.flatMap(({ resources }) => resources.map(({ classId }) => classId));
    this.classes = new Set(all.filter((classId, place) => all.indexOf(classId) !== place));
  }

  /** Whether what a choice asks for is still there. */
  fits(choice: Choice): boolean {
    if (this.classes.size === 0) return true;
    return choice.group.resources.every(({ classId, amount }, place) => {
      const provider = providerOf(choice, place);
      return provider === undefined || !this.classes.has(classId) || amount <= this.left(provider, classId);
    });
  }

  take(choice: Choice): void {
    this.#add(choice, 1);
  }

  giveBack(choice: Choice): void {
    this.#add(choice, -1);
  }

  /** How much of a shared class the groups may still take of a provider. */
  left(provider: Provider, classId: number): number {
    const inventory = inventoryOf(provider, classId);
    if (inventory === undefined) return 0;
    const taken = this.#taken.get(provider)?.get(classId) ?? 0;
    return Math.min(capacity(inventory) - inventory.used, inventory.maxUnit) - taken;
  }

  #add(choice: Choice, sign: 1 | -1): void {
    if (this.classes.size === 0) return;
    for (const [place, { classId, amount }] of choice.group.resources.entries()) {
      const provider = providerOf(choice, place);
      if (provider === undefined || !this.classes.has(classId)) continue;
      let taken = this.#taken.get(provider);
      if (taken === undefined) {
        taken = new Map();
        this.#taken.set(provider, taken);
      }
      taken.set(classId, (taken.get(classId) ?? 0) + sign * amount);
    }
  }
}
