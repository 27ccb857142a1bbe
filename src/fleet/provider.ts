import type { InventoryFields } from '../placement/inventory.ts';

/** An inventory in memory, with its usage: the sum of all allocations of its class on its provider. */
export type Inventory = InventoryFields & {
  readonly classId: number;
  /** Moves with every claim; everything else of an inventory is replaced, not changed. */
  used: number;
  /** When it was last written, in milliseconds since 1970. */
  readonly modifiedAtMs: number;
};

/**
 * A resource provider in memory. Its fields change only while the fleet takes over a refresh, in one go: whoever reads
 * without awaiting in between sees one state.
 */
export type Provider = {
  readonly id: number;
  uuid: string;
  name: string;
  generation: number;
  createdAtMs: number | undefined;
  updatedAtMs: number | undefined;
  parent: Provider | undefined;
  /** The root of the tree, which for a root is the provider itself. */
  root: Provider;
  children: readonly Provider[];
  /** All providers of the tree, the root first and parents before children; only the root's is filled. */
  tree: readonly Provider[];
  /** By class id, ascending. */
  inventories: readonly Inventory[];
  /** Ids, ascending: standard traits come before custom ones. */
  traitIds: readonly number[];
  aggregates: readonly string[];
  /**
   * The summaries of the whole tree among allocation candidates, kept with the root by whoever writes them; dropped whenever
   * anything of the tree changes.
   */
  treeSummary: Buffer | undefined;
};

/** The inventory of a class, if the provider has one. Providers have few, so a scan beats a map. */
export function inventoryOf(provider: Provider, classId: number): Inventory | undefined {
  for (const inventory of provider.inventories) if (inventory.classId === classId) return inventory;
  return undefined;
}

/** The provider and all its descendants, parents before children. Without recursion: nothing bounds the depth of a tree. */
export function subtreeOf(provider: Provider): Provider[] {
  const found: Provider[] = [];
  const open = [provider];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    found.push(next);
    for (const child of next.children.toReversed()) open.push(child);
  }
  return found;
}
