import { isInAny, satisfiesTraits } from '../../fleet/filters.ts';
import { type Provider, treeOf } from '../../fleet/provider.ts';
import { type Condition, requestWith } from '../conditions.ts';
import { isOfKind, satisfiesAlone } from '../options.ts';
import { type KnownNames, type ResolvedGroup, resolveVariant } from '../resolve.ts';

/** How a condition by itself is checked, without the other conditions. */
export type ConditionCheck = {
  /** Whether a provider meets the condition, if it serves the group in the tree of an anchor. */
  readonly meets: Meets;
  /** Whether a provider of a tree meets the condition, whatever else the group asks for. */
  readonly isMetIn: (anchor: Provider) => boolean;
};

/** Whether a provider meets a condition in the tree of an anchor. */
export type Meets = (provider: Provider, anchor: Provider) => boolean;

const always: ConditionCheck = { meets: () => true, isMetIn: () => true };
const never: ConditionCheck = { meets: () => false, isMetIn: () => false };

/**
 * The check of a condition. Every provider meets isolation and subtrees, which are about several providers.
 *
 * @param conditions all conditions of the query
 */
export function checkOf(names: KnownNames, condition: Condition, conditions: readonly Condition[]): ConditionCheck {
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
      const isLookedAt = conditions.some((other) => other.kind === 'resource' && other.suffix === suffix);
      return ofTree(group, isLookedAt);
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

/** @param isLookedAt whether the group has resources: for a group without, `in_tree` is ignored */
function ofTree({ granular, treeRoot }: ResolvedGroup, isLookedAt: boolean): ConditionCheck {
  const isMetIn = (anchor: Provider): boolean => anchor === treeRoot;
  if (!isLookedAt) return { meets: () => true, isMetIn };
  return { meets: granular ? ({ root }) => root === treeRoot : (_, anchor) => isMetIn(anchor), isMetIn };
}
