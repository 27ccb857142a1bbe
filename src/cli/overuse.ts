import type { Inventory, Resources } from '../client/index.ts';
import { capacityOf } from '../client/inventories.ts';
import { printError } from '../text/print.ts';

/** The classes of which more is used than their inventories give, each as text with its numbers. */
export const overuseOf = (
  inventories: readonly (readonly [resourceClass: string, inventory: Inventory | undefined])[],
  usages: Resources,
): readonly string[] =>
  inventories.flatMap(([name, inventory]) => {
    const used = usages[name] ?? 0;
    if (inventory === undefined || used <= capacityOf(inventory)) return [];
    return [`${name} (used ${used}, capacity ${capacityOf(inventory)})`];
  });

/** The service accepts an inventory below what is used: consumers keep their allocations. */
export function warnOfOveruse(exceeded: readonly string[]): void {
  if (exceeded.length === 0) return;
  printError(
    `Warning: more is used than there is now: ${exceeded.join(', ')}. Consumers keep their allocations; no further claim of this class fits.`,
  );
}
