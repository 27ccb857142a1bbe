import { inventoryOf, type Provider } from '../fleet/provider.ts';
import { capacity } from '../placement/inventory.ts';
import { type Choice, providerOf } from './candidate.ts';
import type { ResolvedGroup } from './resolve.ts';

/** Keeps what several groups together take of the inventories that more than one of them asks for. */
export class SharedUsage {
  readonly #classes: ReadonlySet<number>;
  readonly #taken = new Map<Provider, Map<number, number>>();

  constructor(groups: readonly ResolvedGroup[]) {
    const all = groups.flatMap(({ resources }) => resources.map(({ classId }) => classId));
    this.#classes = new Set(all.filter((classId, place) => all.indexOf(classId) !== place));
  }

  /** Takes what a choice asks for, unless that is more than there is. */
  take(choice: Choice): boolean {
    if (this.#classes.size === 0) return true;
    this.#add(choice, 1);
    const fits = choice.group.resources.every(({ classId }, place) => {
      const provider = providerOf(choice, place);
      if (provider === undefined || !this.#classes.has(classId)) return true;
      const inventory = inventoryOf(provider, classId);
      const taken = this.#taken.get(provider)?.get(classId) ?? 0;
      return inventory !== undefined && inventory.used + taken <= capacity(inventory) && taken <= inventory.maxUnit;
    });
    if (!fits) this.giveBack(choice);
    return fits;
  }

  giveBack(choice: Choice): void {
    if (this.#classes.size > 0) this.#add(choice, -1);
  }

  #add(choice: Choice, sign: 1 | -1): void {
    for (const [place, { classId, amount }] of choice.group.resources.entries()) {
      const provider = providerOf(choice, place);
      if (provider === undefined || !this.#classes.has(classId)) continue;
      let taken = this.#taken.get(provider);
      if (taken === undefined) {
        taken = new Map();
        this.#taken.set(provider, taken);
      }
      taken.set(classId, (taken.get(classId) ?? 0) + sign * amount);
    }
  }
}
