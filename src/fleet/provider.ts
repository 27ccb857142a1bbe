import type { InventoryFields } from '../placement/inventory.ts';
import { nowhere } from './places.ts';

/** An inventory in memory, with its usage: the sum of all allocations of its class on its provider. */
export type Inventory = {
  readonly classId: number;
  /** One object for all inventories that are alike: most hosts have what others have. */
  readonly fields: InventoryFields;
  /** Moves with every claim; everything else of an inventory is replaced, not changed. */
  used: number;
  /** When it was last written, in seconds since 1970. */
  readonly modifiedAtSeconds: number;
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
  /** In seconds since 1970, as when it was updated. */
  createdAtSeconds: number | undefined;
  updatedAtSeconds: number | undefined;
  parent: Provider | undefined;
  /** The root of the tree, which for a root is the provider itself. Where parents form a loop, the root has a parent, too. */
  root: Provider;
  /** Its place among the providers of the fleet, in no particular order; -1 where it is gone. */
  place: number;
  /** Where it is among the fleet's roots, -1 where it is none. */
  rootPlace: number;
  children: readonly Provider[];
  /** All providers of the tree, the root first and parents before children; only the root's is filled. */
  tree: readonly Provider[];
  /** By class id, ascending. */
  inventories: readonly Inventory[];
  /** Ids, ascending: standard traits come before custom ones. As with aggregates, one list for all who have the same. */
  traitIds: readonly number[];
  aggregates: readonly string[];
  /** What was found out about the whole tree, kept with the root; dropped whenever anything of the tree changes. */
  findings: TreeFindings | undefined;
};

/** What is kept of a tree as long as its providers, what they have and what is used of it stay as they are. */
export type TreeFindings = {
  /** Its summaries among allocation candidates. */
  summary: Buffer | undefined;
  /** What groups of candidate requests may take from, by the numbers of those that were asked for last. */
  options: { readonly group: number; readonly providers: readonly (readonly Provider[])[] }[] | undefined;
};

/** A provider that has nothing yet, and no parent. */
export function blankProvider(id: number): Provider {
  const provider: Omit<Provider, 'root'> & { root: Provider | undefined } = {
    id,
    uuid: '',
    name: '',
    generation: 0,
    createdAtSeconds: undefined,
    updatedAtSeconds: undefined,
    parent: undefined,
    root: undefined,
    place: nowhere,
    rootPlace: nowhere,
    children: none,
    tree: none,
    inventories: none,
    traitIds: none,
    aggregates: none,
    findings: undefined,
  };
  const lone = provider as Provider; // it is one with the next line, its own root
  lone.root = lone;
  lone.tree = [lone];
  return lone;
}

const none: readonly never[] = [];

/** Where to keep what is found out about the tree of a root. */
export function findingsOf(root: Provider): TreeFindings {
  root.findings ??= { summary: undefined, options: undefined };
  return root.findings;
}

/** The inventory of a class, if the provider has one. Providers have few, so a scan beats a map. */
export function inventoryOf(provider: Provider, classId: number): Inventory | undefined {
  for (const inventory of provider.inventories) if (inventory.classId === classId) return inventory;
  return undefined;
}

/** What is above the provider in its tree. Who follows it comes to an end, also where parents form a loop. */
export const aboveOf = (provider: Provider): Provider | undefined =>
  provider === provider.root ? undefined : provider.parent;

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
