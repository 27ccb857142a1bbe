import { instead, isNotFound } from './errors.ts';
import { allOptional } from './filters.ts';
import type { Guarded } from './inventories.ts';
import { type Microversion, versionNumber } from './microversions.ts';
import {
  type Ask,
  type Call,
  type CallOptions,
  isGuarded,
  listed,
  pathOf,
  type Tagged,
  type WriteOptions,
} from './operation.ts';

/** Which traits are listed. */
export type TraitQuery = {
  /** `startswith:CUSTOM_` or `in:TRAIT,TRAIT`. */
  readonly name?: string | undefined;
  /** true: only traits that a provider has. false: only traits that no provider has. */
  readonly associated?: boolean | undefined;
};

/** From 1.6 on. */
export type TraitCalls = {
  list(query?: TraitQuery, options?: CallOptions): Promise<readonly string[]>;
  exists(name: string, options?: CallOptions): Promise<boolean>;
  /** Makes sure that a custom trait exists. @returns whether this call created it */
  ensure(name: string, options?: CallOptions): Promise<boolean>;
  delete(name: string, options?: WriteOptions): Promise<void>;
};

/** The traits of a provider, and the generation that guards them. */
export type ProviderTraits = { readonly traits: readonly string[] } & Guarded;

/** From 1.6 on. */
export type ProviderTraitCalls<Version extends Microversion = Microversion> = {
  show(provider: string, options?: CallOptions): Promise<ProviderTraits & Tagged<Version>>;
  /** Replaces the traits of a provider. */
  set(provider: string, traits: ProviderTraits, options?: WriteOptions): Promise<ProviderTraits & Tagged<Version>>;
  deleteAll(provider: string, options?: WriteOptions): Promise<void>;
};

const since = versionNumber('1.6');
const root = pathOf('traits');

/** Makes the calls about traits. */
export function traitCalls(call: Call, ask: Ask): TraitCalls {
  return {
    list: async ({ name, associated } = {}, options) => {
      const query = allOptional({ name, associated: associated?.toString() });
      return listed(ask, 'traits', { since, query }, options);
    },
    exists: (name, options) =>
      call({ method: 'GET', path: root + pathOf(name), since }, options).then(() => true, instead(false, isNotFound)),
    ensure: async (name, options) => {
      const operation = { method: 'PUT', path: root + pathOf(name), since, repeatable: () => true } as const;
      return (await call(operation, options)).status === 201;
    },
    delete: (name, options) => ask({ method: 'DELETE', path: root + pathOf(name), since }, options),
  };
}

/** Makes the calls about the traits of a provider. */
export function providerTraitCalls<Version extends Microversion>(ask: Ask): ProviderTraitCalls<Version> {
  const path = (provider: string) => pathOf('resource_providers', provider, 'traits');
  return {
    show: (provider, options) => ask({ method: 'GET', path: path(provider), since }, options),
    set: (provider, body, options) =>
      ask({ method: 'PUT', path: path(provider), since, body: () => body, repeatable: isGuarded }, options),
    deleteAll: (provider, options) => ask({ method: 'DELETE', path: path(provider), since }, options),
  };
}
