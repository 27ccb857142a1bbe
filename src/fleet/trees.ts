import type { ProviderRow } from '../../db/fleet/rows.ts';
import { type Provider, subtreeOf, treeOf } from './provider.ts';
import type { ProvidersById } from './providers_by_id.ts';

/**
 * Updates parents, children, roots and trees after some providers were added, removed or got another parent. Only their
 * old and new trees are changed. The root of a provider is found by following parents, which also works for old rows
 * without a root.
 *
 * @param rows the rows of the change, which have the parents
 * @param relinked providers that are new or have another parent than before
 * @param gone providers that were removed
 * @param setRoot called for each provider of these trees with whether it is a root
 */
export function linkTrees(
  byId: Pick<ProvidersById, 'get'>,
  rows: readonly Pick<ProviderRow, 'id' | 'parent'>[],
  relinked: ReadonlySet<Provider>,
  gone: readonly Provider[],
  setRoot: (provider: Provider, isRoot: boolean) => void,
): void {
  if (relinked.size === 0 && gone.length === 0) return;
  const removed = new Set(gone);
  const nodes = new Set<Provider>();
  const addTreeOf = (provider: Provider): void => {
    for (const node of treeOf(provider.root)) if (!removed.has(node)) nodes.add(node);
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

  const heads = headsOfLoops(nodes);
  const isRoot = (node: Provider): boolean => node.parent === undefined || heads.has(node);
  const childrenOf = new Map<Provider, Provider[]>();
  for (const node of nodes) {
    if (node.parent === undefined || heads.has(node) || !nodes.has(node.parent)) continue;
    const siblings = childrenOf.get(node.parent);
    if (siblings === undefined) childrenOf.set(node.parent, [node]);
    else siblings.push(node);
  }
  for (const node of nodes) {
    node.children = childrenOf.get(node)?.toSorted((a, b) => a.id - b.id) ?? none;
    setRoot(node, isRoot(node));
    node.findings = undefined;
    if (!isRoot(node)) node.tree = none;
  }
  for (const node of nodes) {
    if (!isRoot(node)) continue;
    // A copy has no spare capacity, which would need more memory than most trees.
    node.tree = node.children.length === 0 ? none : subtreeOf(node).slice();
    node.root = node;
    for (const provider of node.tree) provider.root = node;
  }
}

const none: readonly never[] = [];

/**
 * The provider with the smallest id of each loop of parents. The API refuses such loops, but other programs can make
 * them. This provider is made the root of a tree, so that following parents or children ends, and the API can move each
 * of the providers.
 */
function headsOfLoops(nodes: ReadonlySet<Provider>): ReadonlySet<Provider> {
  const heads = new Set<Provider>();
  const passed = new Set<Provider>();
  for (const start of nodes) {
    if (start.parent === undefined) continue;
    const way = new Set<Provider>();
    let node: Provider | undefined = start;
    for (; node !== undefined && !passed.has(node); node = node.parent) {
      passed.add(node);
      way.add(node);
    }
    if (node === undefined || !way.has(node)) continue;
    let head = node;
    for (let next = node.parent; next !== undefined && next !== node; next = next.parent) {
      if (next.id < head.id) head = next;
    }
    heads.add(head);
  }
  return heads;
}
