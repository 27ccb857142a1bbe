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
    node.tree = subtreeOf(node).slice(); // a copy has no room to grow, which would be more than most trees themselves
    for (const provider of node.tree) provider.root = node;
  }
}

const none: readonly never[] = [];

/**
 * Of each loop of parents, which the API refuses and other programs can make, the provider with the smallest id: the root of a
 * tree, so that whoever follows parents or children comes to an end, and the API can move each of them.
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
