import type { ProviderRow } from '../../../db/fleet/rows.ts';
import { capacity, type InventoryFields, type JudgedFields } from '../../placement/inventory.ts';
import { asciiJson } from '../../text/strings.ts';

// One provider

/** The fields of an inventory, and its resource class. */
export type FieldsOfClass = InventoryFields & { readonly classId: number };

/** An inventory in memory, with its usage: the sum of all allocations of its class on its provider. */
export type Inventory = {
  /** Equal inventories of many hosts share one object. Only an overlay replaces the object while the overlay is shown. */
  fields: FieldsOfClass & JudgedFields;
  /** Changes with every claim. For any other change the whole inventory is replaced. */
  used: number;
  /** When it was last written, in seconds since 1970. */
  readonly modifiedAtSeconds: number;
};

/** The id of the class of an inventory. */
export const classOf = ({ fields }: Inventory): number => fields.classId;

/**
 * A resource provider in memory. Its fields change only when a refresh is applied, in one step: code that does not
 * await between its reads sees one state. Code that awaits looks the provider up again by its id: it may have been replaced by a
 * copy (held_snapshots.ts).
 */
export type Provider = {
  readonly id: number;
  uuid: string;
  name: string;
  generation: number;
  /** In seconds since 1970, like `updatedAtSeconds`. */
  createdAtSeconds: number | undefined;
  updatedAtSeconds: number | undefined;
  parent: Provider | undefined;
  /**
   * The root of the tree, which for a root is the provider itself. If parents form a loop, the root has a parent as
   * well.
   */
  root: Provider;
  /** Its index among the providers of the fleet, in arbitrary order; -1 if it was removed. */
  slot: number;
  /** Its index among the roots of the fleet; -1 if it is no root. */
  rootIndex: number;
  /**
   * All providers of the tree: each is followed by all that are below it, children by ascending id. Only a root with children has this
   * list, since a list of one takes 56 bytes; others have an empty one. Read it by `treeOf`.
   */
  tree: readonly Provider[];
  /** By class id, ascending. */
  inventories: readonly Inventory[];
  /**
   * Ids, ascending: standard traits come before custom ones. Providers with equal traits share one list, as with
   * aggregates.
   */
  traitIds: readonly number[];
  aggregates: readonly string[];
  /** Results computed for the whole tree, cached in its root. Dropped when anything in the tree changes. */
  cache: TreeCache | undefined;
};

/** Results that are cached for a tree until a provider of the tree, its parts or its usages change. */
export type TreeCache = {
  /** Its provider summaries for answers with allocation candidates. */
  summary: Buffer | undefined;
  /** For the groups of the latest requests for candidates, by group number: the providers that each may take from. */
  options: { readonly group: number; readonly providers: readonly (readonly Provider[])[] }[] | undefined;
};

/** A provider without parts and without a parent. */
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
    slot: nowhere,
    rootIndex: nowhere,
    tree: none,
    inventories: none,
    traitIds: none,
    aggregates: none,
    cache: undefined,
  };
  const lone = provider as Provider; // complete after the next line, which sets the root
  lone.root = lone;
  return lone;
}

/** Whether no provider has had a UUID that JSON escapes: only programs other than the API can write such a one. */
let areUuidsPlain = true;
const isPlain = (uuid: string): boolean => /^[\w-]*$/.test(uuid);

/** Gives a provider its UUID. */
export function setUuid(provider: Provider, uuid: string): void {
  provider.uuid = uuid;
  areUuidsPlain &&= isPlain(uuid);
}

/** The UUID of a provider, escaped for an ASCII JSON string. */
export const jsonUuid = ({ uuid }: Provider): string =>
  areUuidsPlain || isPlain(uuid) ? uuid : asciiJson(uuid).slice(1, -1);

/** The row of a provider, as the database has it; an empty name may be null there. */
export const rowOf = (provider: Provider): ProviderRow => ({
  id: provider.id,
  uuid: provider.uuid,
  name: provider.name,
  generation: provider.generation,
  parent: provider.parent?.id ?? null,
  created: provider.createdAtSeconds ?? null,
  updated: provider.updatedAtSeconds ?? null,
});

const none: readonly never[] = [];

/** Whether a provider is a tree by itself. A search may meet a provider that was a root only when the search began. */
export const isAloneInTree = (provider: Provider): boolean => provider.root === provider && provider.tree.length === 0;

/** All providers of the tree of a root, the root first and parents before children; none for a provider below a root. */
export const treeOf = (root: Provider): readonly Provider[] => (isAloneInTree(root) ? [root] : root.tree);

/** The length of `treeOf`, which makes a list. */
export const treeSize = (root: Provider): number => (isAloneInTree(root) ? 1 : root.tree.length);

/** The cache for the tree of a root. */
export function cacheOf(root: Provider): TreeCache {
  root.cache ??= { summary: undefined, options: undefined };
  return root.cache;
}

/**
 * The inventory of a class, if the provider has one. Providers have few inventories, so a scan is faster than a map.
 */
export function inventoryOf(provider: Provider, classId: number): Inventory | undefined {
  for (const inventory of provider.inventories) if (inventory.fields.classId === classId) return inventory;
  return undefined;
}

/** The order of the inventories of a provider. */
export const byClass = (one: Pick<Inventory, 'fields'>, other: Pick<Inventory, 'fields'>): number =>
  one.fields.classId - other.fields.classId;

/** The free amount of a class: negative where the provider is overcommitted; undefined where it has no such inventory. */
export function freeOf(provider: Provider, classId: number): number | undefined {
  const inventory = inventoryOf(provider, classId);
  return inventory === undefined ? undefined : capacity(inventory.fields) - inventory.used;
}

/**
 * The parent of the provider in its tree; none for a root. A loop that follows it ends, even if parents form a loop.
 */
export const aboveOf = (provider: Provider): Provider | undefined =>
  provider === provider.root ? undefined : provider.parent;

/** The provider and all its descendants, parents before children. */
export function subtreeOf(provider: Provider): readonly Provider[] {
  const tree = treeOf(provider.root);
  const found = new Set([provider]);
  for (let index = tree.indexOf(provider) + 1; index < tree.length; index++) {
    const next = tree[index];
    if (next?.parent === undefined || !found.has(next.parent)) break;
    found.add(next);
  }
  return [...found];
}

// All providers of a fleet

/** The slot of a provider that is not in a fleet. */
export const nowhere = -1;

/** The providers of a fleet by id. */
export type ProvidersById = {
  readonly size: number;
  get(id: number): Provider | undefined;
  /** All providers by ascending id; ids below zero come last. The list of all is made first: 8 ms for 1,000,000 providers. */
  values(): Generator<Provider>;
  /** A list of `values`, which does not change with the fleet. */
  list(): readonly Provider[];
};

/** `ProvidersById`, as the fleet changes them. */
export type LivingProvidersById = ProvidersById & {
  add(provider: Provider): void;
  delete(id: number): void;
};

/**
 * An array by id, since ids of PostgreSQL follow each other: it needs a third of the memory of a `Map`. V8 makes a hash
 * table of an array with wide gaps. Ids below zero, which come only after more than
 * 2,000,000,000 providers were made or if another program writes them, become properties of it.
 */
export function createProvidersById(): LivingProvidersById {
  const providers: Provider[] = [];
  let size = 0;
  return {
    get size() {
      return size;
    },
    get: (id) => providers[id],
    // Not by index: the array may have few elements and a length of 2^31.
    *values() {
      yield* Object.values(providers);
    },
    list: () => Object.values(providers),
    add: (provider) => {
      if (providers[provider.id] === undefined) size++;
      providers[provider.id] = provider;
    },
    delete: (id) => {
      if (providers[id] === undefined) return;
      delete providers[id];
      size--;
    },
  };
}

/**
 * Numbers the providers of a fleet, so that a set of providers can be bits. The number of a removed provider is used
 * again.
 */
export type Slots = {
  readonly providers: readonly (Provider | undefined)[];
  take(provider: Provider): void;
  free(provider: Provider): void;
  /** Replaces a provider by its copy, which has the same slot. */
  replace(copy: Provider): void;
};

/** Creates an empty list of slots. */
export function createSlots(): Slots {
  const providers: (Provider | undefined)[] = [];
  const free: number[] = [];
  return {
    providers,
    take: (provider) => {
      provider.slot = free.pop() ?? providers.length;
      providers[provider.slot] = provider;
    },
    free: (provider) => {
      providers[provider.slot] = undefined;
      free.push(provider.slot);
      provider.slot = nowhere;
    },
    replace: (copy) => {
      providers[copy.slot] = copy;
    },
  };
}
