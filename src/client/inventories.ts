import { type Microversion, versionNumber } from './microversions.ts';
import { type Ask, type CallOptions, isGuarded, pathOf, type Tagged, type WriteOptions } from './operation.ts';

/** The inventory of one resource class. Its capacity is `(total - reserved) * allocation_ratio`. */
export type Inventory = {
  readonly total: number;
  readonly reserved: number;
  /** An allocation has an amount between `min_unit` and `max_unit`, in steps of `step_size`. */
  readonly min_unit: number;
  readonly max_unit: number;
  readonly step_size: number;
  readonly allocation_ratio: number;
};

/** How much of an inventory can be allocated. */
export const capacityOf = ({
  total,
  reserved,
  allocation_ratio,
}: Pick<Inventory, 'total' | 'reserved' | 'allocation_ratio'>): number =>
  Math.trunc((total - reserved) * allocation_ratio);

/** Missing fields get the server's defaults: nothing reserved, any amount, ratio 1. */
export type NewInventory = { readonly total: number } & Partial<Inventory>;

/** The provider's generation as it was read. If the provider has changed since, the write is refused. */
export type Guarded = { readonly resource_provider_generation: number };

/** All inventories of a provider. There is one tag for all of them together, and each inventory also has a tag. */
export type Inventories<Version extends Microversion = Microversion> = {
  readonly inventories: { readonly [resourceClass: string]: Inventory & Tagged<Version> };
} & Guarded &
  Tagged<Version>;
/** The new inventories of a provider. They replace the old ones. */
export type NewInventories = { readonly inventories: { readonly [resourceClass: string]: NewInventory } } & Guarded;

/** The inventories of a provider. */
export type InventoryCalls<Version extends Microversion = Microversion> = {
  list(provider: string, options?: CallOptions): Promise<Inventories<Version>>;
  /** Replaces all inventories of the provider. */
  set(provider: string, inventories: NewInventories, options?: WriteOptions): Promise<Inventories<Version>>;
  /** Deletes all inventories; from 1.5. */
  deleteAll(provider: string, options?: WriteOptions): Promise<void>;
  show(provider: string, resourceClass: string, options?: CallOptions): Promise<Inventory & Guarded & Tagged<Version>>;
  /** Adds the inventory of a class. The provider must not have one of this class. */
  add(
    provider: string,
    inventory: NewInventory & { readonly resource_class: string },
    options?: WriteOptions,
  ): Promise<Inventory & Guarded & Tagged<Version>>;
  /** Replaces the inventory of a class. The provider must have one of this class. */
  replace(
    provider: string,
    resourceClass: string,
    inventory: NewInventory & Guarded,
    options?: WriteOptions,
  ): Promise<Inventory & Guarded & Tagged<Version>>;
  delete(provider: string, resourceClass: string, options?: WriteOptions): Promise<void>;
};

/** Microversion 1.5 deletes all inventories at once. */
const deleteAllSince = versionNumber('1.5');

/** Makes the calls about inventories. */
export function inventoryCalls<Version extends Microversion>(ask: Ask): InventoryCalls<Version> {
  const path = (provider: string, ...more: readonly string[]) =>
    pathOf('resource_providers', provider, 'inventories', ...more);
  return {
    list: (provider, options) => ask({ method: 'GET', path: path(provider) }, options),
    set: (provider, body, options) =>
      ask({ method: 'PUT', path: path(provider), body: () => body, repeatable: isGuarded }, options),
    deleteAll: (provider, options) => ask({ method: 'DELETE', path: path(provider), since: deleteAllSince }, options),
    show: (provider, name, options) => ask({ method: 'GET', path: path(provider, name) }, options),
    add: (provider, body, options) => ask({ method: 'POST', path: path(provider), body: () => body }, options),
    replace: (provider, name, body, options) =>
      ask({ method: 'PUT', path: path(provider, name), body: () => body, repeatable: isGuarded }, options),
    delete: (provider, name, options) => ask({ method: 'DELETE', path: path(provider, name) }, options),
  };
}
