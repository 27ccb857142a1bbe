import { nowhere, type Provider } from './provider.ts';

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
  /** Puts a copy of a provider, which has its slot, where the provider was. */
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
