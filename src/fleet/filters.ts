import type { Provider } from './provider.ts';

/** Traits by id: of each inner list at least one, and none of the forbidden. */
export type TraitIds = { readonly required: readonly (readonly number[])[]; readonly forbidden: readonly number[] };

/** Whether these traits, of one provider or of several together, satisfy the filter. */
export const satisfiesTraits = (traitIds: readonly number[], filter: TraitIds): boolean =>
  hasRequiredTraits(traitIds, filter.required) && !hasAnyTrait(traitIds, filter.forbidden);

/** Whether there is one trait of each inner list. */
export function hasRequiredTraits(traitIds: readonly number[], required: TraitIds['required']): boolean {
  for (const anyOf of required) if (!hasAny(traitIds, anyOf)) return false;
  return true;
}

/** Whether one of some traits is there. */
export const hasAnyTrait = (traitIds: readonly number[], unwanted: readonly number[]): boolean =>
  hasAny(traitIds, unwanted);

/** Whether the provider itself is in one aggregate of each inner list. */
export function isMemberOf(provider: Provider, required: readonly (readonly string[])[]): boolean {
  for (const anyOf of required) if (!isInAny(provider, anyOf)) return false;
  return true;
}

/** Whether the provider itself is in one of some aggregates. */
export const isInAny = (provider: Provider, aggregates: readonly string[]): boolean =>
  hasAny(provider.aggregates, aggregates);

/** A plain loop: a function made for each provider that is looked at would be garbage at once. */
function hasAny<Item>(list: readonly Item[], wanted: readonly Item[]): boolean {
  for (const item of wanted) if (list.includes(item)) return true;
  return false;
}
