import { type Provider, subtreeOf } from './provider.ts';

/**
 * Puts parents, children, roots and trees right after some providers came, went or got another parent. Only their trees,
 * old and new, are touched. The root of a provider is found by following parents, which also serves old data whose root was
 * never filled in.
 *
 * @param relinked providers that are new or have another `parentId` than before
 * @param gone providers that are no more
 * @param setRoot is told of each provider of these trees whether it is a root
 */
export function linkTrees(
  byId: ReadonlyMap<number, Provider>,
  relinked: ReadonlySet<Provider>,
  gone: readonly Provider[],
  setRoot: (provider: Provider, isRoot: boolean) => void,
): void {
  if (relinked.size === 0 && gone.length === 0) return;
  const parentOf = ({ parentId }: Provider) => (parentId === null ? undefined : byId.get(parentId));
  const removed = new Set(gone);
  const nodes = new Set<Provider>();
  const addTreeOf = (provider: Provider): void => {
    for (const node of provider.root.tree) if (!removed.has(node)) nodes.add(node);
  };
  for (const provider of gone) addTreeOf(provider);
  for (const provider of relinked) {
    addTreeOf(provider);
    nodes.add(provider);
    const parent = parentOf(provider);
    if (parent === undefined) continue;
    addTreeOf(parent);
    nodes.add(parent);
  }

  for (const node of nodes) node.parent = parentOf(node);
  breakLoops(nodes);
  const childrenOf = new Map<Provider, Provider[]>();
  for (const node of nodes) {
    if (node.parent === undefined) continue;
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

/**
 * Makes trees of loops, which the API refuses and other programs can bring about: of each, the provider with the smallest id is
 * taken for a root, so that everybody who follows parents or children comes to an end, and the API can move any of them.
 */
function breakLoops(nodes: ReadonlySet<Provider>): void {
  const passed = new Set<Provider>();
  for (const start of nodes) {
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
    head.parent = undefined;
  }
}
