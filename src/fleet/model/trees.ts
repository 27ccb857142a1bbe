import type { ProviderRow } from '../../../db/fleet/rows.ts';
import type { Postings } from './postings.ts';
import {
  blankProvider,
  classOf,
  type LivingProvidersById,
  nowhere,
  type Provider,
  type ProvidersById,
  type Slots,
  treeOf,
} from './provider.ts';

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
    setRoot(node, isRoot(node));
    node.cache = undefined;
    node.tree = none;
  }
  for (const node of nodes) {
    if (!isRoot(node)) continue;
    if (childrenOf.has(node)) node.tree = treeBelow(node, childrenOf);
    node.root = node;
    for (const provider of node.tree) provider.root = node;
  }
}

const none: readonly never[] = [];

/** Without recursion: nothing bounds the depth of a tree. */
function treeBelow(root: Provider, childrenOf: ReadonlyMap<Provider, Provider[]>): readonly Provider[] {
  const found: Provider[] = [];
  const open = [root];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    found.push(next);
    for (const child of childrenOf.get(next)?.sort((a, b) => b.id - a.id) ?? none) open.push(child);
  }
  return found.slice(); // a list that grew has memory to spare, more than most trees need
}

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

/** All maps and sets that contain the providers of a fleet. (Lists by the index or the slot of a provider need no change for a copy.) */
type Indexes = {
  readonly withClass: Postings<number>;
  readonly withTrait: Postings<number>;
  readonly inAggregate: Postings<string>;
  readonly byId: LivingProvidersById;
  readonly byUuid: Map<string, Provider>;
  readonly byName: Map<string, Provider>;
  readonly roots: Provider[];
};

/** Replaces a tree in the fleet by a copy. The original is not changed any more. @returns by provider, its copy */
export function replaceTree(fleet: Indexes, slots: Slots, root: Provider): ReadonlyMap<Provider, Provider> {
  const { byId, byUuid, byName, roots, withClass, withTrait, inAggregate } = fleet;
  const copies = copyTree(root);
  for (const [former, copy] of copies) {
    byId.add(copy);
    if (byUuid.get(former.uuid) === former) byUuid.set(former.uuid, copy);
    if (byName.get(former.name) === former) byName.set(former.name, copy);
    if (former.rootIndex !== nowhere) roots[former.rootIndex] = copy;
    slots.replace(copy);
    withClass.replace(former, copy, former.inventories.map(classOf));
    withTrait.replace(former, copy, former.traitIds);
    inAggregate.replace(former, copy, former.aggregates);
  }
  root.cache = undefined; // the cache takes memory, and few answers that hold a snapshot would use it
  return copies;
}

/**
 * Copies a tree. The copies have the content of the providers, and link to each other in the same way. Lists that never change are
 * shared.
 *
 * @returns by provider, its copy
 */
function copyTree(root: Provider): ReadonlyMap<Provider, Provider> {
  const copies = new Map<Provider, Provider>();
  for (const provider of treeOf(root)) copies.set(provider, copyAlone(provider));
  const copyOf = (provider: Provider): Provider => copies.get(provider) ?? provider;
  for (const [provider, copy] of copies) {
    copy.parent = provider.parent && copyOf(provider.parent);
    copy.root = copyOf(provider.root);
    if (provider.tree.length > 0) copy.tree = provider.tree.map(copyOf);
  }
  return copies;
}

/** A copy of a provider without its links to others. It is made like a new provider, so that V8 has one hidden class for all providers. */
function copyAlone(provider: Provider): Provider {
  const copy = blankProvider(provider.id);
  copy.uuid = provider.uuid;
  copy.name = provider.name;
  copy.generation = provider.generation;
  copy.createdAtSeconds = provider.createdAtSeconds;
  copy.updatedAtSeconds = provider.updatedAtSeconds;
  copy.slot = provider.slot;
  copy.rootIndex = provider.rootIndex;
  copy.inventories = provider.inventories.map(({ fields, used, modifiedAtSeconds }) => ({
    fields,
    used,
    modifiedAtSeconds,
  }));
  copy.traitIds = provider.traitIds;
  copy.aggregates = provider.aggregates;
  return copy;
}
