import { type Provider, subtreeOf } from './provider.ts';
import type { ProviderRow } from './rows.ts';

/**
 * Puts parents, children, roots and trees right after some providers came, went or got another parent. Only their trees,
 * old and new, are touched. The root of a provider is found by following parents, which also serves old data whose root was
 * never filled in.
 *
 * @param rows the rows that brought the change, which know the parents
 * @param relinked providers that are new or have another parent than before
 * @param gone providers that are no more
 * @param setRoot is told of each provider of these trees whether it is a root
 */
export function linkTrees(
  byId: ReadonlyMap<number, Provider>,
  rows: readonly Pick<ProviderRow, 'id' | 'parent'>[],
  relinked: ReadonlySet<Provider>,
  gone: readonly Provider[],
  setRoot: (provider: Provider, isRoot: boolean) => void,
): void {
  if (relinked.size === 0 && gone.length === 0) return;
  const removed = new Set(gone);
  const nodes = new Set<Provider>();
  const addTreeOf = (provider: Provider): void => {
    for (const node of provider.root.tree) if (!removed.has(node)) nodes.add(node);
  };
  for (const provider of gone) addTreeOf(provider);
  for (const row of rows) {
    const provider = byId.get(row.id);
    if (provider === undefined || !relinked.has(provider)) continue;
    addTreeOf(provider);
    nodes.add(provider);
    provider.parent = row.parent === null ? undefined : byId.get(row.parent);
    if (provider.parent !== undefined) {
      addTreeOf(provider.parent);
      nodes.add(provider.parent);
    }
  }

  const childrenOf = new Map<Provider, Provider[]>();
  for (const node of nodes) {
    if (node.parent === undefined || !nodes.has(node.parent)) continue;
    const siblings = childrenOf.get(node.parent);
    if (siblings === undefined) childrenOf.set(node.parent, [node]);
    else siblings.push(node);
  }
  for (const node of nodes) {
    node.children = childrenOf.get(node)?.toSorted((a, b) => a.id - b.id) ?? none;
    const isRoot = node.parent === undefined;
    setRoot(node, isRoot);
    node.treeSummary = undefined;
    if (!isRoot) node.tree = none;
  }
  for (const node of nodes) {
    if (node.parent !== undefined) continue;
    node.tree = subtreeOf(node).slice(); // a copy has no room to grow, which would be more than most trees themselves
    for (const provider of node.tree) provider.root = node;
  }
}

const none: readonly never[] = [];
