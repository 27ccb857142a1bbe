import type { Fleet } from '../fleet/model/fleet.ts';
import { type Provider, treeOf } from '../fleet/model/provider.ts';

/** The trait of providers whose inventories the other members of their aggregates may use. */
const sharingTrait = 'MISC_SHARES_VIA_AGGREGATE';

/** Which providers share with which trees, for the time of one search. */
export type Sharing = {
  /** Whether the fleet has a sharing provider. */
  readonly exists: boolean;
  /** All that share. */
  readonly providers: Iterable<Provider>;
  readonly isSharing: (provider: Provider) => boolean;
  /** The sharing providers of other trees that a tree may use: a provider of the tree is in one of their aggregates. */
  readonly usableBy: (root: Provider) => readonly Provider[];
  /** The roots of all trees that may use a sharing provider, its own included; some come more than once. */
  readonly anchorsOf: (provider: Provider) => Iterable<Provider>;
};

/** Finds the sharing providers of a fleet. `usableBy` and `isSharing` still tell of the same moment after the fleet has changed. */
export function sharingIn(fleet: Fleet): Sharing {
  const trait = fleet.traits.byName.get(sharingTrait)?.id ?? -1;
  const living = fleet.withTrait.of(trait);
  const providers: ReadonlySet<Provider> = living.size === 0 ? none : new Set(living);
  const byAggregate = new Map<string, Provider[]>();
  for (const provider of providers) {
    for (const aggregate of provider.aggregates) {
      const others = byAggregate.get(aggregate);
      if (others === undefined) byAggregate.set(aggregate, [provider]);
      else others.push(provider);
    }
  }
  const usableBy = (root: Provider): readonly Provider[] => {
    let found: Set<Provider> | undefined;
    for (const node of treeOf(root)) {
      for (const aggregate of node.aggregates) {
        for (const provider of byAggregate.get(aggregate) ?? noProviders) {
          if (provider.root === root) continue;
          found ??= new Set();
          found.add(provider);
        }
      }
    }
    return found === undefined ? noProviders : [...found];
  };
  return {
    exists: providers.size > 0,
    providers,
    isSharing: (provider) => providers.has(provider),
    usableBy: byAggregate.size === 0 ? () => noProviders : usableBy,
    anchorsOf: (provider) => anchorsOf(fleet, provider),
  };
}

function* anchorsOf({ inAggregate }: Fleet, provider: Provider): Generator<Provider> {
  yield provider.root;
  for (const aggregate of provider.aggregates) for (const member of inAggregate.of(aggregate)) yield member.root;
}

const noProviders: readonly Provider[] = [];
const none: ReadonlySet<Provider> = new Set();
