import * as v from 'valibot';
import { badRequest, noSuchClass } from '../errors.ts';
import { hasAnyTrait, hasRequiredTraits, isInAny, isMemberOf } from '../fleet/filters.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { inventoryOf, type Provider } from '../fleet/provider.ts';
import { hasRoomFor } from '../placement/inventory.ts';
import type { Query } from '../query/query_string.ts';
import { checkQuery } from '../query/schema.ts';
import { parseMemberOf, parseRequired, parseResources } from '../query/values.ts';
import { object, text, uuidText } from '../schema/json_schema.ts';
import { bySince } from './since.ts';

const string = v.optional(text());
const uuid = v.optional(uuidText);
const parameters = { name: string, uuid, member_of: string, resources: string, in_tree: uuid, required: string };

/** The parameters of GET /resource_providers, each from its version on; a query is held against the newest it may use. */
const schemas = [
  { since: 18, schema: object(parameters) },
  { since: 14, schema: object({ name: string, uuid, member_of: string, resources: string, in_tree: uuid }) },
  { since: 4, schema: object({ name: string, uuid, member_of: string, resources: string }) },
  { since: 3, schema: object({ name: string, uuid, member_of: string }) },
  { since: 0, schema: object({ name: string, uuid }) },
] as const;

/**
 * Reads the filters of GET /resource_providers and returns the function that applies them. A provider must satisfy each of
 * them by itself.
 *
 * @throws ApiError 400 for parameters that the version does not have, or bad values; the function throws it for traits and
 *   classes that do not exist.
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
    let found: Iterable<Provider> = fleet.byId.values();
    if (values.in_tree) {
      const node = fleet.byUuid.get(values.in_tree);
      if (node === undefined) return [];
      found = node.root.tree;
    }
    if (values.name) found = only(fleet.byName.get(values.name), found, values.in_tree);
    if (values.uuid) found = [...found].filter((provider) => provider.uuid === values.uuid);
    const traitId = (name: string): number => {
      const trait = fleet.traits.byName.get(name);
      if (trait === undefined) {
        throw badRequest(`Invalid trait(s) in "required" parameter: No such trait(s): ${name}.`);
      }
      return trait.id;
    };
    if (traits.required.length > 0) {
      const required = traits.required.map((anyOf) => anyOf.map(traitId));
      const having = [...fleet.withTrait.smallest(required)].filter(({ traitIds }) =>
        hasRequiredTraits(traitIds, required),
      );
      if (having.length === 0) return [];
      found = intersect(having, found);
    }
    if (traits.forbidden.length > 0) {
      const forbidden = traits.forbidden.map(traitId);
      found = [...found].filter(({ traitIds }) => !hasAnyTrait(traitIds, forbidden));
    }
    if (aggregates.required.length > 0) {
      const members = [...fleet.inAggregate.smallest(aggregates.required)].filter((provider) =>
        isMemberOf(provider, aggregates.required),
      );
      if (members.length === 0) return [];
      found = intersect(members, found);
    }
    if (aggregates.forbidden.length > 0) {
      found = [...found].filter((provider) => !isInAny(provider, aggregates.forbidden));
    }
    for (const [name, amount] of resources) {
      const resourceClass = fleet.classes.byName.get(name);
      if (resourceClass === undefined) {
        throw badRequest(`Invalid resource class in resources parameter: ${noSuchClass(name)}`);
      }
      found = [...found].filter((provider) => {
        const inventory = inventoryOf(provider, resourceClass.id);
        return inventory !== undefined && hasRoomFor(inventory, amount);
      });
    }
    return [...found];
  };
}

/** The one provider, where it is among those in question. */
function only(provider: Provider | undefined, among: Iterable<Provider>, filtered: unknown): readonly Provider[] {
  if (provider === undefined) return [];
  return !filtered || [...among].includes(provider) ? [provider] : [];
}

function intersect(some: readonly Provider[], others: Iterable<Provider>): readonly Provider[] {
  const wanted = new Set(some);
  return [...others].filter((provider) => wanted.has(provider));
}
