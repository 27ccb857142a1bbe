import { isInAny, satisfiesTraits } from '../../fleet/filters.ts';
import type { Fleet } from '../../fleet/fleet.ts';
import type { Provider } from '../../fleet/provider.ts';
import { type Condition, requestWith } from '../conditions.ts';
import { isOfKind, satisfiesAlone } from '../options.ts';
import { type ResolvedGroup, resolveVariant } from '../resolve.ts';

/** How providers and trees are held against a condition by itself. */
export type Meeting = {
  /** Whether a provider that serves the group in the tree of an anchor meets it. */
  readonly meets: Meets;
  /** Whether some provider of a tree meets it, whatever else the group asks for. */
  readonly isMetIn: (anchor: Provider) => boolean;
};

export type Meets = (provider: Provider, anchor: Provider) => boolean;

const always: Meeting = { meets: () => true, isMetIn: () => true };
const never: Meeting = { meets: () => false, isMetIn: () => false };

/** @param conditions all of the query; what is between providers, isolation and subtrees, each meets by itself. */
export function meetingOf(fleet: Fleet, condition: Condition, conditions: readonly Condition[]): Meeting {
  if (condition.kind === 'isolate' || condition.kind === 'subtree') return always;
  const resolved = resolveVariant(fleet, requestWith([condition]));
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

const inTree = (meets: Meets): Meeting => ({
  meets,
  isMetIn: (anchor) => anchor.tree.some((provider) => meets(provider, anchor)),
});

/** For the group without suffix the root speaks for its tree. */
function ofAggregate(group: ResolvedGroup): Meeting {
  const plain = inTree((provider) => isOfKind(provider, group));
  if (group.granular) return plain;
  return {
    ...plain,
    meets: (provider, anchor) => isOfKind(provider, group) && !isInAny(anchor, group.forbiddenAggregates),
  };
}

/** @param isLookedAt whether the group has resources: one that has none is looked for in any tree */
function ofTree({ granular, treeRoot }: ResolvedGroup, isLookedAt: boolean): Meeting {
  const isMetIn = (anchor: Provider): boolean => anchor === treeRoot;
  if (!isLookedAt) return { meets: () => true, isMetIn };
  return { meets: granular ? ({ root }) => root === treeRoot : (_, anchor) => isMetIn(anchor), isMetIn };
}
