import * as v from 'valibot';
import type { ProviderSet } from '../../fleet/index/postings.ts';
import {
  aggregatesOf,
  hasAnyTrait,
  hasRequiredTraits,
  isInAny,
  isMemberOf,
  onLists,
  traitsOf,
} from '../../fleet/model/filters.ts';
import type { Fleet } from '../../fleet/model/fleet.ts';
import type { Names } from '../../fleet/model/names.ts';
import { inventoryOf, type Provider, treeOf } from '../../fleet/model/provider.ts';
import { hasRoomFor } from '../../placement/inventory.ts';
import { badRequest, noSuchClass, noSuchTraits } from '../../rest/errors.ts';
import { dashedUuidText, object, text } from '../../rest/json_schema.ts';
import { since } from '../../rest/microversions.ts';
import { mostWorkMs, type Pieces, type TooWide, type Turns } from '../../rest/pieces.ts';
import { parseMemberOf, parseRequired, parseResources, type Query } from '../../rest/query_string.ts';
import { checkQuery } from '../../rest/schema_check.ts';
import { bySince } from '../../rest/versions.ts';

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
 * Finds the providers that satisfy the filters, by a fleet whose moment is held from the first pause on.
 *
 * @throws ApiError 400 for traits and classes that do not exist
 */
export type FindProviders = (fleet: Fleet, turns: Turns) => Pieces<readonly Provider[]>;

/**
 * Reads the filters of GET /resource_providers and returns the function that applies them. Each provider must satisfy
 * all filters by itself, without others of its tree.
 *
 * @throws ApiError 400 for parameters that the version does not have, or bad values
 */
export function filterProviders(query: Query, version: number): FindProviders {
  const values: Filters['values'] = checkQuery(query, bySince(schemas, version));
  const aggregates = parseMemberOf(query, '', version);
  const traits = parseRequired(query, '', version);
  const resources = values.resources === undefined ? new Map<string, number>() : parseResources(values.resources);

  return (fleet, turns) => find(fleet, { values, aggregates, traits, resources }, turns);
}

type Filters = {
  readonly values: { readonly [name in keyof typeof parameters]?: string | undefined };
  readonly aggregates: ReturnType<typeof parseMemberOf>;
  readonly traits: ReturnType<typeof parseRequired>;
  readonly resources: ReadonlyMap<string, number>;
};

/** The order of the steps is upstream's: an empty result ends the search before later names are looked up. */
function* find(
  fleet: Fleet,
  { values, aggregates, traits, resources }: Filters,
  turns: Turns,
): Pieces<readonly Provider[]> {
  const { traits: traitNames, classes } = fleet; // those of this moment, also after a pause
  // Undefined as long as all may be found: what few providers have need not be looked for among all.
  let found: readonly Provider[] | undefined;
  const keepOnly = (provider: Provider | undefined): void => {
    found = provider === undefined || found?.includes(provider) === false ? [] : [provider];
  };
  if (values.in_tree) {
    const node = fleet.byUuid.get(values.in_tree);
    if (node === undefined) return [];
    found = treeOf(node.root);
  }
  if (values.name) keepOnly(fleet.byName.get(values.name));
  if (values.uuid) keepOnly(fleet.byUuid.get(values.uuid));
  const required = traits.required.map((anyOf) => anyOf.map((name) => requiredTraitId(traitNames, name)));
  const isFiltered = required.length + aggregates.required.length > 0;
  const all = found === undefined || isFiltered ? fleet.byId.list() : [];
  // The sets of the fleet change with it, so what is needed of them is copied before the first pause.
  const mayHave = required.length === 0 ? [] : inOrder(fleet.withTrait.smallest(required), all);
  const mayBeIn = aggregates.required.length === 0 ? [] : inOrder(fleet.inAggregate.smallest(aggregates.required), all);

  if (required.length > 0) {
    const hasRequired = onLists(traitsOf, (traitIds) => hasRequiredTraits(traitIds, required));
    const rounds = 1 + required.flat().length;
    const having = yield* keep(mayHave, hasRequired, rounds, turns);
    if (having.length === 0) return [];
    found = found === undefined ? having : yield* keep(found, hasRequired, rounds, turns);
  }
  if (traits.forbidden.length > 0) {
    const forbidden = traits.forbidden.map((name) => requiredTraitId(traitNames, name));
    const hasNone = onLists(traitsOf, (traitIds) => !hasAnyTrait(traitIds, forbidden));
    found = yield* keep(found ?? all, hasNone, 1 + forbidden.length, turns);
  }
  if (aggregates.required.length > 0) {
    const isMember = onLists(aggregatesOf, (own) => isMemberOf({ aggregates: own }, aggregates.required));
    const rounds = 1 + aggregates.required.flat().length;
    const members = yield* keep(mayBeIn, isMember, rounds, turns);
    if (members.length === 0) return [];
    found = found === undefined ? members : yield* keep(found, isMember, rounds, turns);
  }
  if (aggregates.forbidden.length > 0) {
    const isInNone = onLists(aggregatesOf, (own) => !isInAny({ aggregates: own }, aggregates.forbidden));
    found = yield* keep(found ?? all, isInNone, 1 + aggregates.forbidden.length, turns);
  }
  for (const [name, amount] of resources) {
    const resourceClass = classes.byName.get(name);
    if (resourceClass === undefined) {
      throw badRequest(`Invalid resource class in resources parameter: ${noSuchClass(name)}`);
    }
    const hasRoom = (provider: Provider): boolean => {
      const inventory = inventoryOf(provider, resourceClass.id);
      return inventory !== undefined && hasRoomFor(inventory, amount);
    };
    found = yield* keep(found ?? all, hasRoom, 1, turns);
  }
  return found ?? all;
}

/** After so many rounds, some 10 microseconds, it is asked whether the turn is over. */
const roundsPerQuestion = 100;

/** Those of some providers for which a condition holds. @param rounds what it takes to tell for one, for `Turns.isOver` */
function* keep(
  providers: readonly Provider[],
  holds: (provider: Provider) => boolean,
  rounds: number,
  turns: Turns,
): Pieces<readonly Provider[]> {
  const kept: Provider[] = [];
  let since = 0;
  for (const provider of providers) {
    if (holds(provider)) kept.push(provider);
    since += rounds;
    if (since < roundsPerQuestion) continue;
    if (turns.isOver(since)) yield;
    since = 0;
  }
  return kept;
}

/** If at least this share of all providers is in a set, it is faster to go through all than to sort the set. */
const dense = 1 / 16;

/** A list with all providers of a set, and maybe others, by ascending id. @param all in this order */
const inOrder = (set: ProviderSet, all: readonly Provider[]): readonly Provider[] =>
  set.size < dense * all.length ? [...set].sort((one, other) => one.id - other.id) : all;

/** The error for filters that take too much work. */
export const filtersTooWide: TooWide = () =>
  badRequest(
    `The search for resource providers was given up after ${mostWorkMs / 1000} s of work. Give fewer traits, aggregates or resource ` +
      'classes, or name a tree.',
  );

/** The id of a trait of `required`. @throws ApiError 400 where there is no trait of this name. */
export function requiredTraitId(traits: Names, name: string): number {
  const trait = traits.byName.get(name);
  if (trait === undefined) throw badRequest(`Invalid trait(s) in "required" parameter: ${noSuchTraits([name])}`);
  return trait.id;
}
