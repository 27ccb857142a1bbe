import type { Provider } from './provider.ts';

/** A filter by traits, as ids: at least one trait of each list in `required`, and none of `forbidden`. */
export type TraitIds = { readonly required: readonly (readonly number[])[]; readonly forbidden: readonly number[] };

/** Whether these traits, of one provider or of several together, satisfy the filter. */
export const satisfiesTraits = (traitIds: readonly number[], filter: TraitIds): boolean =>
  hasRequiredTraits(traitIds, filter.required) && !hasAnyTrait(traitIds, filter.forbidden);

/** Whether these traits include at least one of each inner list. */
export function hasRequiredTraits(traitIds: readonly number[], required: TraitIds['required']): boolean {
  for (const anyOf of required) if (!hasAny(traitIds, anyOf)) return false;
  return true;
}

/** Whether these traits include an unwanted one. */
export const hasAnyTrait = (traitIds: readonly number[], unwanted: readonly number[]): boolean =>
  hasAny(traitIds, unwanted);

type Members = Pick<Provider, 'aggregates'>;

/** Whether the provider itself is in at least one aggregate of each inner list. */
export function isMemberOf(provider: Members, required: readonly (readonly string[])[]): boolean {
  for (const anyOf of required) if (!isInAny(provider, anyOf)) return false;
  return true;
}

/** Whether the provider itself is in one of these aggregates. */
export const isInAny = (provider: Members, aggregates: readonly string[]): boolean =>
  hasAny(provider.aggregates, aggregates);

/** A plain loop: with `some`, a closure would be created and collected for each provider. */
function hasAny<Item>(list: readonly Item[], wanted: readonly Item[]): boolean {
  for (const item of wanted) if (list.includes(item)) return true;
  return false;
}

/**
 * A condition on a list that a provider has, its traits or its aggregates. Many providers share one list, so it is asked once
 * for each list.
 */
export function onLists<List extends object>(
  listOf: (provider: Provider) => List,
  holds: (list: List) => boolean,
): (provider: Provider) => boolean {
  const known = new Map<List, boolean>();
  return (provider) => {
    const list = listOf(provider);
    let result = known.get(list);
    if (result === undefined) {
      result = holds(list);
      known.set(list, result);
    }
    return result;
  };
}

/** For `onLists`. */
export const traitsOf = ({ traitIds }: Provider): Provider['traitIds'] => traitIds;
/** For `onLists`. */
export const aggregatesOf = ({ aggregates }: Provider): Provider['aggregates'] => aggregates;

/** Whether a provider satisfies a filter by traits, found out once for each list of traits. */
export const withTraits = (filter: TraitIds): ((provider: Provider) => boolean) =>
  onLists(traitsOf, (traitIds) => satisfiesTraits(traitIds, filter));
