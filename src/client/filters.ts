import type { Parameter } from './operation.ts';

/** Amounts by resource class: `{ VCPU: 2, MEMORY_MB: 2048 }`. */
export type Resources = { readonly [resourceClass: string]: number };

/** Which providers, or groups of a candidate request, will do. Everything that is given must hold. */
export type ProviderFilter = {
  /** What there must be room for. Of providers from 1.4 on. */
  readonly resources?: Resources | undefined;
  /**
   * Traits, each `TRAIT`, `!TRAIT` for one that there must not be (from 1.22), or `in:TRAIT,TRAIT` for one of several (from 1.39).
   */
  readonly required?: readonly string[] | undefined;
  /**
   * Aggregates, each `UUID`, `in:UUID,UUID` for one of several, or from 1.32 `!UUID` and `!in:UUID,UUID` for none. More than one
   * from 1.24.
   */
  readonly member_of?: readonly string[] | undefined;
  /** A provider, anywhere in the tree that is meant. */
  readonly in_tree?: string | undefined;
};

/** The minor versions that brought the parameters: GET /resource_providers had some of them earlier than candidates. */
export type FilterVersions = { readonly [name in keyof ProviderFilter]-?: number };

const forbiddenTraitsSince = 22;
const anyTraitsSince = 39;
const severalAggregatesSince = 24;
const forbiddenAggregatesSince = 32;

/** @param suffix that of a group of a candidate request; empty outside of groups */
export function filterParameters(
  { resources, required = [], member_of = [], in_tree }: ProviderFilter,
  since: FilterVersions,
  suffix = '',
): readonly Parameter[] {
  // Up to 1.38 only one `required` counts, so that all that can go into one does.
  const anyOf = required.filter((trait) => trait.startsWith('in:'));
  const plain = required.filter((trait) => !trait.startsWith('in:'));
  const forbids = plain.some((trait) => trait.startsWith('!'));
  return [
    ...(resources === undefined || Object.keys(resources).length === 0
      ? []
      : [{ name: `resources${suffix}`, value: resourcesText(resources), since: since.resources }]),
    ...(plain.length === 0
      ? []
      : [
          {
            name: `required${suffix}`,
            value: plain.join(','),
            since: Math.max(since.required, forbids ? forbiddenTraitsSince : 0),
          },
        ]),
    ...anyOf.map((value) => ({ name: `required${suffix}`, value, since: anyTraitsSince })),
    ...member_of.map((value, place) => ({
      name: `member_of${suffix}`,
      value,
      since: Math.max(
        since.member_of,
        place > 0 ? severalAggregatesSince : 0,
        value.startsWith('!') ? forbiddenAggregatesSince : 0,
      ),
    })),
    ...(in_tree === undefined ? [] : [{ name: `in_tree${suffix}`, value: in_tree, since: since.in_tree }]),
  ];
}

const resourcesText = (resources: Resources): string =>
  Object.entries(resources)
    .map(([name, amount]) => `${name}:${amount}`)
    .join(',');

/** A parameter that is there where its value is. */
export const optional = (name: string, value: string | number | undefined, since = 0): readonly Parameter[] =>
  value === undefined ? [] : [{ name, value: String(value), since }];
