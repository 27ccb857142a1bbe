import { versionNumber } from './microversions.ts';
import type { Parameter } from './operation.ts';

/** Amounts by resource class: `{ VCPU: 2, MEMORY_MB: 2048 }`. */
export type Resources = { readonly [resourceClass: string]: number };

/** The sum of amounts, by class. */
export function sumOfResources(all: Iterable<Resources>): Resources {
  const sums = new Map<string, number>();
  for (const resources of all) {
    for (const [name, amount] of Object.entries(resources)) sums.set(name, (sums.get(name) ?? 0) + amount);
  }
  return Object.fromEntries(sums);
}

/** A filter for providers, or for a group of a candidate request. A provider must meet all these conditions. */
export type ProviderFilter = {
  /** The amounts that there must be room for. For providers from 1.4 on. */
  readonly resources?: Resources | undefined;
  /**
   * Traits, each `TRAIT`, `!TRAIT` for a forbidden trait (from 1.22), or `in:TRAIT,TRAIT` for at least one of several
   * (from 1.39).
   */
  readonly required?: readonly string[] | undefined;
  /**
   * Aggregates, each `UUID`, `in:UUID,UUID` for one of several, or from 1.32 `!UUID` and `!in:UUID,UUID` for none. More
   * than one from 1.24.
   */
  readonly member_of?: readonly string[] | undefined;
  /** The UUID of a provider. Only providers of its tree match. */
  readonly in_tree?: string | undefined;
};

/** The versions that introduced the parameters. GET /resource_providers got some of them earlier than candidates. */
export type FilterVersions = { readonly [name in keyof ProviderFilter]-?: number };

const forbiddenTraitsSince = versionNumber('1.22');
const anyTraitsSince = versionNumber('1.39');
const severalAggregatesSince = versionNumber('1.24');
const forbiddenAggregatesSince = versionNumber('1.32');

/** @param suffix the suffix of a group of a candidate request; empty outside of groups */
export function filterParameters(
  { resources, required = [], member_of = [], in_tree }: ProviderFilter,
  since: FilterVersions,
  suffix = '',
): readonly Parameter[] {
  // Up to 1.38 only one `required` counts, so all conditions that one parameter can express are in one.
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
    ...member_of.map((value, index) => ({
      name: `member_of${suffix}`,
      value,
      since: Math.max(
        since.member_of,
        index > 0 ? severalAggregatesSince : 0,
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

/** A parameter, if it has a value. */
export const optional = (name: string, value: string | number | undefined, since = 0): readonly Parameter[] =>
  value === undefined ? [] : [{ name, value: String(value), since }];

/** The parameters that have a value, by name. */
export const allOptional = (values: Readonly<Record<string, string | number | undefined>>): readonly Parameter[] =>
  Object.entries(values).flatMap(([name, value]) => optional(name, value));
