import type { Provider } from './provider.ts';

/** Traits by id: of each inner list at least one, and none of the forbidden. */
export type TraitIds = { readonly required: readonly (readonly number[])[]; readonly forbidden: readonly number[] };

/** Whether these traits, of one provider or of several together, satisfy the filter. */
export const satisfiesTraits = (traitIds: readonly number[], filter: TraitIds): boolean =>
  hasRequiredTraits(traitIds, filter.required) && !hasAnyTrait(traitIds, filter.forbidden);

export const hasRequiredTraits = (traitIds: readonly number[], required: TraitIds['required']): boolean =>
  required.every((anyOf) => anyOf.some((id) => traitIds.includes(id)));

export const hasAnyTrait = (traitIds: readonly number[], unwanted: readonly number[]): boolean =>
  unwanted.length > 0 && unwanted.some((id) => traitIds.includes(id));

/** Whether the provider itself is in one aggregate of each inner list. */
export const isMemberOf = (provider: Provider, required: readonly (readonly string[])[]): boolean =>
  required.every((anyOf) => isInAny(provider, anyOf));

export const isInAny = (provider: Provider, aggregates: readonly string[]): boolean =>
  aggregates.some((uuid) => provider.aggregates.includes(uuid));
