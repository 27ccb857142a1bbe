import { useMemo } from 'preact/hooks';
import type { Named } from '../fit/named.ts';
import { mirror } from '../mirror.ts';
import { useStore } from '../store.ts';
import { aggregatesOf } from './grouping.ts';
import { openTrees, type Tree } from './trees.ts';

const treesOf = openTrees();
let known: { readonly version: number; readonly trees: readonly Tree[] } = { version: 0, trees: [] };

/** The trees of all providers in the mirror. They are made once for each version of the mirror, for all views. */
export function useTrees(): readonly Tree[] {
  useStore(mirror);
  // The version is read with the providers: the mirror changes the same map, so they may be newer than what the component has seen.
  const { version, providers } = mirror.get();
  if (version !== known.version) known = { version, trees: treesOf({ providers }) };
  return known.trees;
}

/** The aggregates by the names that the console shows for them. */
export function useNamedAggregates(): readonly Named[] {
  const trees = useTrees();
  return useMemo(() => aggregatesOf(trees).map(({ key, label }) => ({ uuid: key, name: label })), [trees]);
}
