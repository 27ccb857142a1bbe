import { inventoryOf, type Provider, treeOf, treeSize } from '../../fleet/provider.ts';
import { capacity } from '../../placement/inventory.ts';
import { type Pieces, roundsPerLook, type Turns } from '../../rest/pieces.ts';
import { type Condition, type ResourceCondition, requestWith } from '../conditions.ts';
import { type KnownNames, type ResolvedRequest, resolveVariant } from '../resolve.ts';
import type { Sharing } from '../sharing.ts';
import { overspends } from '../work.ts';
import type { Probes } from './probes.ts';

/** How many amounts are tried at one tree at most. */
const mostAmounts = 50_000;

/** How many different sums are tried of what other groups take of the class. */
const mostSums = 1000;

/**
 * The largest amount of a class that fits in some tree, if all other conditions stay; 0 if none fits.
 *
 * In a candidate, one provider gives the class to the group, and may give the same class to other groups. The amount is
 * bounded by what these leave, and by the units of the inventory. So only these bounds are tried: one for each provider
 * and each sum that other groups may take. A binary search is not possible: because of `step_size`, an amount may fit
 * though a smaller one does not.
 *
 * @param trees the trees that may fit; all others certainly do not
 * @param turns those after which the work pauses
 * @returns undefined if it would take too much work
 */
export function* largestAmount(
  names: KnownNames,
  conditions: readonly Condition[],
  condition: ResourceCondition,
  trees: readonly Provider[],
  sharing: Sharing,
  probes: Probes,
  turns: Turns | undefined,
): Pieces<number | undefined> {
  if (trees.length === 0) return 0;
  const resolved = resolveVariant(names, requestWith(conditions));
  const classId = names.classes.byName.get(condition.name)?.id;
  if (resolved === 'nothing' || classId === undefined) return 0;
  const taken = sumsOfOthers(resolved, condition.suffix, classId);
  if (taken === undefined) return undefined;

  // Trees with the largest bound first: mostly the first tree reaches its bound.
  const boundedTrees: { readonly anchor: Provider; readonly most: number }[] = [];
  for (const anchor of trees) {
    if (turns?.isOver(treeSize(anchor))) yield undefined;
    if (overspends(probes.work, treeSize(anchor))) return undefined;
    let most = 0;
    for (const provider of [...treeOf(anchor), ...sharing.usableBy(anchor)]) {
      most = Math.max(most, largestBeside(provider, classId, 0));
    }
    if (most > 0) boundedTrees.push({ anchor, most });
  }
  boundedTrees.sort((a, b) => b.most - a.most);

  const probeFor = (amount: number) => probes.ofResolved(withAmount(resolved, condition.suffix, classId, amount));
  const known = new Map<number, ReturnType<typeof probeFor>>();
  let largest = 0;
  for (const { anchor, most } of boundedTrees) {
    if (most <= largest) break;
    const providers = [...treeOf(anchor), ...sharing.usableBy(anchor)];
    if (providers.length * taken.length > mostAmounts || overspends(probes.work, providers.length * taken.length)) {
      return undefined;
    }
    if (turns?.isOver(providers.length * taken.length)) yield undefined;
    const amounts = new Set(providers.flatMap((provider) => taken.map((sum) => largestBeside(provider, classId, sum))));
    for (const amount of [...amounts].sort((a, b) => b - a)) {
      if (amount <= largest) break;
      if (turns?.isOver(roundsPerLook)) yield undefined;
      const probe = known.get(amount) ?? probeFor(amount);
      known.set(amount, probe);
      const verdict = probe(anchor);
      if (verdict === undefined) return undefined;
      if (verdict) largest = amount;
    }
  }
  return largest;
}

/**
 * The largest amount of a class that a provider can give, by capacity and units, beside what is taken; 0 if it cannot.
 */
function largestBeside(provider: Provider, classId: number, taken: number): number {
  const inventory = inventoryOf(provider, classId);
  if (inventory === undefined) return 0;
  const { fields, used } = inventory;
  const bound = Math.min(capacity(fields) - used, fields.maxUnit) - taken;
  const amount = bound - (bound % fields.stepSize);
  return amount >= Math.max(fields.minUnit, 1) ? amount : 0;
}

/** All sums that other groups may take of a class at the provider of a group; undefined if there are too many. */
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
