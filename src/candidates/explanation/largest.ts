import type { Fleet } from '../../fleet/fleet.ts';
import { inventoryOf, type Provider } from '../../fleet/provider.ts';
import { capacity } from '../../placement/inventory.ts';
import { type Condition, type ResourceCondition, requestWith } from '../conditions.ts';
import { type ResolvedRequest, resolveVariant } from '../resolve.ts';
import type { Sharing } from '../sharing.ts';
import { isSpent } from '../work.ts';
import type { Probes } from './probes.ts';

/** Of a class that many groups ask for, so many different sums of what they take are looked at. */
const mostSums = 1000;

/**
 * The largest amount of a class that fits somewhere, with all else as asked; 0 for none.
 *
 * Where everything is placed, the class of one group at one provider and the same class of others with it, the amount is bounded by
 * what the others leave there, and by the units of the inventory. So the largest that fits is among the largest by these bounds,
 * for each provider and each sum that the others may take. It need not be near an amount that does not fit, since it goes by steps.
 *
 * @param trees of which one may fit; the others certainly do not
 * @returns undefined where finding out would take too much work
 */
export function largestAmount(
  fleet: Fleet,
  conditions: readonly Condition[],
  condition: ResourceCondition,
  trees: readonly Provider[],
  sharing: Sharing,
  probes: Probes,
): number | undefined {
  if (trees.length === 0) return 0;
  const resolved = resolveVariant(fleet, requestWith(conditions));
  const classId = fleet.classes.byName.get(condition.name)?.id;
  if (resolved === 'nothing' || classId === undefined) return 0;
  const taken = sumsOfOthers(resolved, condition.suffix, classId);
  if (taken === undefined) return undefined;

  // From the tree that promises most to the one that promises least: mostly the first keeps its promise.
  const promising: { readonly anchor: Provider; readonly most: number }[] = [];
  for (const anchor of trees) {
    if (isSpent(probes.work, anchor.tree.length)) return undefined;
    let most = 0;
    for (const provider of [...anchor.tree, ...sharing.usableBy(anchor)]) {
      most = Math.max(most, largestBeside(provider, classId, 0));
    }
    if (most > 0) promising.push({ anchor, most });
  }
  promising.sort((a, b) => b.most - a.most);

  const probeFor = (amount: number) => probes.ofResolved(withAmount(resolved, condition.suffix, classId, amount));
  const known = new Map<number, ReturnType<typeof probeFor>>();
  let largest = 0;
  for (const { anchor, most } of promising) {
    if (most <= largest) break;
    const providers = [...anchor.tree, ...sharing.usableBy(anchor)];
    if (isSpent(probes.work, providers.length * taken.length)) return undefined;
    const amounts = new Set(providers.flatMap((provider) => taken.map((sum) => largestBeside(provider, classId, sum))));
    for (const amount of [...amounts].sort((a, b) => b - a)) {
      if (amount <= largest) break;
      const probe = known.get(amount) ?? probeFor(amount);
      known.set(amount, probe);
      const verdict = probe(anchor);
      if (verdict === undefined) return undefined;
      if (verdict) largest = amount;
    }
  }
  return largest;
}

/** The largest amount of a class that a provider can give by capacity and units, while others take some of it; 0 for none. */
export function largestBeside(provider: Provider, classId: number, taken: number): number {
  const inventory = inventoryOf(provider, classId);
  if (inventory === undefined) return 0;
  const { fields, used } = inventory;
  const bound = Math.min(capacity(fields) - used, fields.maxUnit) - taken;
  const amount = bound - (bound % fields.stepSize);
  return amount >= Math.max(fields.minUnit, 1) ? amount : 0;
}

/** What the other groups may take of a class at the provider of a group, in all ways; undefined where there are too many. */
function sumsOfOthers(
  { groups, isolate }: ResolvedRequest,
  suffix: string,
  classId: number,
): readonly number[] | undefined {
  const isGranular = suffix !== '';
  let sums: ReadonlySet<number> = new Set([0]);
  for (const group of groups) {
    if (group.suffix === suffix || (isolate && isGranular && group.granular)) continue;
    const amount = group.resources.find((resource) => resource.classId === classId)?.amount;
    if (amount === undefined) continue;
    sums = new Set([...sums].flatMap((sum) => [sum, sum + amount]));
    if (sums.size > mostSums) return undefined;
  }
  return [...sums];
}

const withAmount = (request: ResolvedRequest, suffix: string, classId: number, amount: number): ResolvedRequest => ({
  ...request,
  groups: request.groups.map((group) =>
    group.suffix === suffix
      ? {
          ...group,
          resources: group.resources.map((resource) => (resource.classId === classId ? { classId, amount } : resource)),
        }
      : group,
  ),
});
