import type { State } from './state.ts';

/*
 * How providers of a state form trees.
 */

/** A provider and all that are above it, up to its root. */
export function pathUp({ providers }: State, uuid: string): readonly string[] {
  const path: string[] = [];
  for (let node: string | null | undefined = uuid; node != null; node = providers[node]?.parent) path.push(node);
  return path;
}

/** The root of the tree that a provider is in. */
export const rootOf = (state: State, uuid: string): string => pathUp(state, uuid).at(-1) ?? uuid;

/** Whether a provider is `top` or is below it. */
export const isWithin = (state: State, uuid: string, top: string): boolean => pathUp(state, uuid).includes(top);

/** All providers of a tree, by its root. */
export const treeOf = (state: State, root: string): readonly string[] =>
  Object.keys(state.providers).filter((uuid) => isWithin(state, uuid, root));

/** The roots of all trees. */
export const rootsOf = ({ providers }: State): readonly string[] =>
  Object.keys(providers).filter((uuid) => providers[uuid]?.parent === null);

/** Whether a provider has children. */
export const hasChildren = ({ providers }: State, uuid: string): boolean =>
  Object.values(providers).some(({ parent }) => parent === uuid);
