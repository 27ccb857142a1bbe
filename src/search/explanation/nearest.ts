import { freeOf, inventoryOf, type Provider, treeOf } from '../../fleet/model/provider.ts';
import { capacity, type InventoryFields } from '../../placement/inventory.ts';
import type { Pieces, Turns } from '../../request/turns.ts';
import type { Sharing } from '../anchors.ts';
import { type Condition, type ResourceCondition, requestWith } from '../conditions.ts';
import { isInAny, isOfKind, satisfiesAlone, satisfiesTraits } from '../filters.ts';
import { byName, keepBest } from '../order.ts';
import { overspends, type Work } from '../request.ts';
import { type KnownNames, type ResolvedGroup, resolveVariant } from '../resolve.ts';

/** The data and the budget of an explanation. */
export type Explaining = {
  readonly names: KnownNames;
  readonly conditions: readonly Condition[];
  readonly sharing: Sharing;
  /** The budget of all its work. */
  readonly work: Work;
  /** The turns after which the work pauses. */
  readonly turns: Turns | undefined;
};

/** How a condition by itself is checked, without the other conditions. */
export type ConditionCheck = {
  /** Whether a provider meets the condition, if it serves the group in the tree of an anchor. */
  readonly meets: Meets;
  /** Whether a provider of a tree meets the condition, without regard to the other conditions of the group. */
  readonly isMetIn: (anchor: Provider) => boolean;
};

/** Whether a provider meets a condition in the tree of an anchor. */
type Meets = (provider: Provider, anchor: Provider) => boolean;

const always: ConditionCheck = { meets: () => true, isMetIn: () => true };
const never: ConditionCheck = { meets: () => false, isMetIn: () => false };

/**
 * The check of a condition. Every provider meets isolation and subtrees, which are about several providers.
 *
 * @param conditions all conditions of the query
 */
export function conditionCheckOf(
  names: KnownNames,
  condition: Condition,
  conditions: readonly Condition[],
): ConditionCheck {
  if (condition.kind === 'isolate' || condition.kind === 'subtree') return always;
  const resolved = resolveVariant(names, requestWith([condition]));
  if (resolved === 'nothing') return never;
  if (condition.kind === 'root') {
    const isMetIn = ({ traitIds }: Provider): boolean => satisfiesTraits(traitIds, resolved.rootTraits);
    return { meets: (_, anchor) => isMetIn(anchor), isMetIn };
  }
  const [group] = resolved.groups;
  if (group === undefined) return never;
  switch (condition.kind) {
    case 'resource':
      return inTree((provider) => satisfiesAlone(provider, group));
    case 'trait':
      return inTree((provider) => isOfKind(provider, group));
    case 'aggregate':
      return ofAggregate(group);
    default: {
      const { suffix } = condition;
      const hasResources = conditions.some((other) => other.kind === 'resource' && other.suffix === suffix);
      return ofTree(group, hasResources);
    }
  }
}

const inTree = (meets: Meets): ConditionCheck => ({
  meets,
  isMetIn: (anchor) => treeOf(anchor).some((provider) => meets(provider, anchor)),
});

/** For the group without suffix, a forbidden aggregate of the root excludes the whole tree. */
function ofAggregate(group: ResolvedGroup): ConditionCheck {
  const plain = inTree((provider) => isOfKind(provider, group));
  if (group.granular) return plain;
  return {
    ...plain,
    meets: (provider, anchor) => isOfKind(provider, group) && !isInAny(anchor, group.forbiddenAggregates),
  };
}

/** @param hasResources whether the group has resources: in a group without resources `in_tree` is ignored */
function ofTree({ granular, treeRoot }: ResolvedGroup, hasResources: boolean): ConditionCheck {
  const isMetIn = (anchor: Provider): boolean => anchor === treeRoot;
  if (!hasResources) return { meets: () => true, isMetIn };
  return { meets: granular ? ({ root }) => root === treeRoot : (_, anchor) => isMetIn(anchor), isMetIn };
}

/**
 * Why no provider of a tree meets a condition. `together`: each condition is met by some provider, but not all at the same time.
 */
type Reason =
  | 'capacity'
  | 'max_unit'
  | 'min_unit'
  | 'step_size'
  | 'absent'
  | 'trait'
  | 'aggregate'
  | 'tree'
  | 'together';

/** A condition that a tree does not meet, and the provider that comes nearest to it. */
export type Unmet = {
  readonly condition: Condition;
  readonly provider: Provider;
  /** Of resources only. */
  readonly asked: number | undefined;
  /** The free amount of the provider. */
  readonly free: number | undefined;
  /** The free amount of all providers together that may serve the tree. */
  readonly treeFree: number | undefined;
  readonly reason: Reason;
};

/** A tree that does not fit, and the conditions that it does not meet. */
export type NearTree = { readonly root: Provider; readonly unmet: readonly Unmet[] };

/** Keeps the trees that come nearest to fitting. */
type Nearest = {
  /**
   * @param anchor a tree that does not fit
   * @param isEnough for each condition, whether the tree fits if only this one is dropped
   */
  note(anchor: Provider, isEnough: readonly (boolean | undefined)[]): void;
  /** Whether the budget was enough to examine all trees that were noted. */
  isComplete(): boolean;
  /** Fewest unmet conditions first, then the smallest shortfall, then by name. */
  list(): Pieces<readonly NearTree[]>;
};

type Noted = {
  readonly root: Provider;
  readonly indexes: readonly number[];
  readonly isTogether: boolean;
  readonly shortfall: number;
};

/** @param limit how many trees are kept */
export function nearestTrees(
  { names: { classes }, conditions, sharing, work, turns }: Explaining,
  checks: readonly ConditionCheck[],
  limit: number,
): Nearest {
  const meets = checks.map((check) => check.meets);
  const classIds = conditions.map((condition) =>
    condition.kind === 'resource' ? (classes.byName.get(condition.name)?.id ?? -1) : -1,
  );
  const serving = (anchor: Provider): readonly Provider[] => {
    const usable = sharing.usableBy(anchor);
    return usable.length === 0 ? treeOf(anchor) : [...treeOf(anchor), ...usable];
  };
  const richest = (providers: readonly Provider[], index: number): { provider: Provider; free: number } | undefined => {
    let found: { provider: Provider; free: number } | undefined;
    for (const provider of providers) {
      const free = freeOf(provider, classIds[index] ?? -1);
      if (free !== undefined && free > (found?.free ?? Number.NEGATIVE_INFINITY)) found = { provider, free };
    }
    return found;
  };
  const shortfallOf = (anchor: Provider, indexes: readonly number[]): number => {
    let largest = 0;
    for (const index of indexes) {
      const condition = conditions[index];
      if (condition?.kind !== 'resource') continue;
      const free = richest(serving(anchor), index)?.free ?? 0;
      largest = Math.max(largest, condition.amount / Math.max(free, 0));
    }
    return largest;
  };

  let isComplete = true;
  const nearest = keepBest(limit, inOrderOfNearness);
  const unmetAt = (
    anchor: Provider,
    index: number,
    providers: readonly Provider[],
    nearestOf: Map<string, Provider>,
  ): Unmet | undefined => {
    const condition = conditions[index];
    if (condition === undefined) return undefined;
    if (condition.kind !== 'resource') {
      const provider = nearestTo(condition, anchor, providers, nearestOf);
      return {
        condition,
        provider,
        asked: undefined,
        free: undefined,
        treeFree: undefined,
        reason: reasonOf(condition),
      };
    }
    const { provider = anchor, free = 0 } = richest(providers, index) ?? {};
    return {
      condition,
      provider,
      asked: condition.amount,
      free,
      treeFree: providers.reduce((sum, each) => sum + Math.max(0, freeOf(each, classIds[index] ?? -1) ?? 0), 0),
      reason: shortReason(provider, classIds[index] ?? -1, condition),
    };
  };
  /**
   * The provider that meets most conditions of the group, among the providers that may serve the group.
   *
   * @param known the providers that were found at the same tree before, by suffix
   */
  const nearestTo = (
    condition: Condition,
    anchor: Provider,
    providers: readonly Provider[],
    known: Map<string, Provider>,
  ): Provider => {
    if (!('suffix' in condition) || condition.kind === 'tree') return anchor;
    const { suffix } = condition;
    const found = known.get(suffix);
    if (found !== undefined) return found;
    const indexes = [...conditions.entries()].flatMap(([index, other]) =>
      'suffix' in other && other.suffix === suffix ? [index] : [],
    );
    let best = { provider: anchor, met: -1 };
    for (const provider of providers) {
      const met = indexes.filter((index) => meets[index]?.(provider, anchor)).length;
      if (met > best.met) best = { provider, met };
    }
    known.set(suffix, best.provider);
    return best.provider;
  };

  return {
    note: (anchor, isEnough) => {
      if (limit === 0) return;
      const providers = serving(anchor);
      if (overspends(work, meets.length * providers.length)) {
        isComplete = false;
        return;
      }
      let indexes: number[] = [];
      for (let index = 0; index < meets.length; index++) {
        if (!providers.some((provider) => meets[index]?.(provider, anchor))) indexes.push(index);
      }
      const isTogether = indexes.length === 0;
      if (isTogether) {
        const all = [...meets.keys()];
        const enough = all.filter((index) => isEnough[index] === true);
        indexes = enough.length > 0 ? enough : all;
      }
      const worst = nearest.worst();
      if (worst !== undefined && indexes.length > worst.indexes.length) return;
      nearest.note({ root: anchor, indexes, isTogether, shortfall: shortfallOf(anchor, indexes) });
    },
    isComplete: () => isComplete,
    list: () => listTrees(nearest.list(), serving, unmetAt, turns),
  };
}

function* listTrees(
  noted: readonly Noted[],
  serving: (anchor: Provider) => readonly Provider[],
  unmetAt: (
    anchor: Provider,
    index: number,
    providers: readonly Provider[],
    nearestOf: Map<string, Provider>,
  ) => Unmet | undefined,
  turns: Turns | undefined,
): Pieces<readonly NearTree[]> {
  const trees: NearTree[] = [];
  for (const { root, indexes, isTogether } of noted) {
    const providers = serving(root);
    const nearestOf = new Map<string, Provider>();
    const unmet: Unmet[] = [];
    for (const index of indexes) {
      const each = unmetAt(root, index, providers, nearestOf);
      if (each !== undefined) unmet.push(isTogether ? { ...each, reason: 'together' } : each);
      if (turns?.isOver(providers.length)) yield undefined;
    }
    trees.push({ root, unmet });
  }
  return trees;
}

const inOrderOfNearness = (a: Noted, b: Noted): number =>
  a.indexes.length - b.indexes.length ||
  (a.shortfall === b.shortfall ? 0 : a.shortfall - b.shortfall) ||
  byName(a.root, b.root);

function shortReason(provider: Provider, classId: number, { amount }: ResourceCondition): Reason {
  const inventory = inventoryOf(provider, classId);
  if (inventory === undefined) return 'absent';
  const { fields, used } = inventory;
  if (used + amount > capacity(fields)) return 'capacity';
  return unitReason(fields, amount);
}

function unitReason({ maxUnit, minUnit }: InventoryFields, amount: number): Reason {
  if (amount > maxUnit) return 'max_unit';
  return amount < minUnit ? 'min_unit' : 'step_size';
}

const reasons = { trait: 'trait', root: 'trait', aggregate: 'aggregate', tree: 'tree' } as const;

const reasonOf = ({ kind }: Condition): Reason =>
  kind === 'trait' || kind === 'root' || kind === 'aggregate' || kind === 'tree' ? reasons[kind] : 'together';
