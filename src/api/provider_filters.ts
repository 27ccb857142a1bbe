import * as v from 'valibot';
import { hasAnyTrait, hasRequiredTraits, isInAny, isMemberOf } from '../fleet/filters.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { inventoryOf, type Provider, treeOf } from '../fleet/provider.ts';
import { hasRoomFor } from '../placement/inventory.ts';
import { badRequest, noSuchClass, noSuchTraits } from '../rest/errors.ts';
import { dashedUuidText, object, text } from '../rest/json_schema.ts';
import { since } from '../rest/microversions.ts';
import { checkQuery } from '../rest/query_schema.ts';
import type { Query } from '../rest/query_string.ts';
import { parseMemberOf, parseRequired, parseResources } from '../rest/query_values.ts';
import { bySince } from '../rest/versions.ts';

const string = v.optional(text());
const uuid = v.optional(dashedUuidText);
const parameters = { name: string, uuid, member_of: string, resources: string, in_tree: uuid, required: string };

/** The parameters of GET /resource_providers by version, newest first. */
const schemas = [
  { since: since.providersByTraits, schema: object(parameters) },
  {
    since: since.nestedProviders,
    schema: object({ name: string, uuid, member_of: string, resources: string, in_tree: uuid }),
  },
  { since: since.providersByResources, schema: object({ name: string, uuid, member_of: string, resources: string }) },
  { since: since.providersByAggregate, schema: object({ name: string, uuid, member_of: string }) },
  { since: since.firstVersion, schema: object({ name: string, uuid }) },
] as const;

/**
 * Reads the filters of GET /resource_providers and returns the function that applies them. Each provider must satisfy
 * all filters by itself, without others of its tree.
 *
 * @throws ApiError 400 for parameters that the version does not have, or bad values; the function throws it for traits
 *   and classes that do not exist.
 */
export function filterProviders(query: Query, version: number): (fleet: Fleet) => readonly Provider[] {
  const values: { readonly [name in keyof typeof parameters]?: string | undefined } = checkQuery(
    query,
    bySince(schemas, version),
  );
  const aggregates = parseMemberOf(query, '', version);
  const traits = parseRequired(query, '', version);
  const resources = values.resources === undefined ? new Map<string, number>() : parseResources(values.resources);

  // The order of the steps is upstream's: an empty result ends the search before later names are looked up.
  return (fleet) => {
    // Undefined as long as all may be found: what few providers have need not be looked for among all.
    let found: readonly Provider[] | undefined;
    const keep = (holds: (provider: Provider) => boolean): void => {
      found = (found === undefined ? fleet.byId.values() : Iterator.from(found)).filter(holds).toArray();
    };
    const keepAmong = (some: readonly Provider[]): void => {
      if (found === undefined) {
        found = some.toSorted((one, other) => one.id - other.id);
        return;
      }
      const wanted = new Set(some);
      keep((provider) => wanted.has(provider));
    };
    if (values.in_tree) {
      const node = fleet.byUuid.get(values.in_tree);
      if (node === undefined) return [];
      found = treeOf(node.root);
    }
    if (values.name) keepAmong(listOf(fleet.byName.get(values.name)));
    if (values.uuid) keepAmong(listOf(fleet.byUuid.get(values.uuid)));
    const traitId = (name: string): number => requiredTraitId(fleet, name);
    if (traits.required.length > 0) {
      const required = traits.required.map((anyOf) => anyOf.map(traitId));
      const having = [...fleet.withTrait.smallest(required)].filter(({ traitIds }) =>
        hasRequiredTraits(traitIds, required),
      );
      if (having.length === 0) return [];
      keepAmong(having);
    }
    if (traits.forbidden.length > 0) {
      const forbidden = traits.forbidden.map(traitId);
      keep(({ traitIds }) => !hasAnyTrait(traitIds, forbidden));
    }
    if (aggregates.required.length > 0) {
      const members = [...fleet.inAggregate.smallest(aggregates.required)].filter((provider) =>
        isMemberOf(provider, aggregates.required),
      );
      if (members.length === 0) return [];
      keepAmong(members);
    }
    if (aggregates.forbidden.length > 0) keep((provider) => !isInAny(provider, aggregates.forbidden));
    for (const [name, amount] of resources) {
      const resourceClass = fleet.classes.byName.get(name);
      if (resourceClass === undefined) {
        throw badRequest(`Invalid resource class in resources parameter: ${noSuchClass(name)}`);
      }
      keep((provider) => {
        const inventory = inventoryOf(provider, resourceClass.id);
        return inventory !== undefined && hasRoomFor(inventory, amount);
      });
    }
    return found ?? [...fleet.byId.values()];
  };
}

const listOf = (provider: Provider | undefined): readonly Provider[] => (provider === undefined ? [] : [provider]);

/** The id of a trait of `required`. @throws ApiError 400 where there is no trait of this name. */
export function requiredTraitId(fleet: Fleet, name: string): number {
  const trait = fleet.traits.byName.get(name);
  if (trait === undefined) throw badRequest(`Invalid trait(s) in "required" parameter: ${noSuchTraits([name])}`);
  return trait.id;
}
