import type { Fleet } from '../fleet/fleet.ts';
import type { Provider } from '../fleet/provider.ts';

/** The trait of providers whose inventories the other members of their aggregates may use. */
const sharingTrait = 'MISC_SHARES_VIA_AGGREGATE';

/** Who shares with whom, for the time of one search. */
export type Sharing = {
  /** Whether anybody shares at all. */
  readonly exists: boolean;
  /** All that share. */
  readonly providers: Iterable<Provider>;
  readonly isSharing: (provider: Provider) => boolean;
  /** The sharing providers outside of a tree that the tree may use: some node of it is in one of their aggregates. */
  readonly usableBy: (root: Provider) => readonly Provider[];
  /** The roots of all trees that may use a sharing provider, its own included. */
  readonly anchorsOf: (provider: Provider) => Iterable<Provider>;
};

/** Looks up once who shares. */
export function sharingIn(fleet: Fleet): Sharing {
  const trait = fleet.traits.byName.get(sharingTrait)?.id ?? -1;
  const providers = fleet.withTrait.of(trait);
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
    for (const node of root.tree) {
      for (const aggregate of node.aggregates) {
        for (const provider of byAggregate.get(aggregate) ?? nobody) {
          if (provider.root === root) continue;
          found ??= new Set();
          found.add(provider);
        }
      }
    }
    return found === undefined ? nobody : [...found];
  };
  return {
    exists: providers.size > 0,
    providers,
    isSharing: (provider) => providers.has(provider),
    usableBy: byAggregate.size === 0 ? () => nobody : usableBy,
    *anchorsOf(provider) {
      yield provider.root;
      for (const aggregate of provider.aggregates)
        for (const member of fleet.inAggregate.of(aggregate)) yield member.root;
    },
  };
}

const nobody: readonly Provider[] = [];
