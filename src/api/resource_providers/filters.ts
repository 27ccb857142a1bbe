import * as v from 'valibot';
import type { Fleet } from '../../fleet/model/fleet.ts';
import { type Provider, treeOf } from '../../fleet/model/provider.ts';
import { since } from '../../placement/microversions.ts';
import { firstStored, spellingsAt } from '../../placement/spellings.ts';
import { bySince } from '../../placement/versions.ts';
import { badRequest } from '../../request/errors.ts';
import { mostWorkMs, type Pieces, type TooWide, type Turns } from '../../request/turns.ts';
import { dashedUuidText, object, text, uuidText } from '../../rest/json_schema.ts';
import { parseMemberOf, parseRequired, parseResources, type Query, refuseRepeats } from '../../rest/query_string.ts';
import { checkQuery } from '../../rest/schema_check.ts';
import { anyProvider, checksOf, type FewProviders, fewestFor, type ProviderFilter } from '../../search/filters.ts';
import type { RequestGroup } from '../../search/request.ts';
import { amountsOf, traitIdsOf } from '../../search/resolve.ts';

/** Where a trait of `required` that does not exist is named, and the text before upstream's text about it. */
export const inRequired = { parameter: 'required', before: 'Invalid trait(s) in "required" parameter: ' };

/** The parameters of GET /resource_providers, to which later versions added one each; from 2.1 on a UUID may have any spelling. */
const string = v.optional(text());
const uuid = v.optional(dashedUuidText);
const parameters = { name: string, uuid };
const byAggregate = { ...parameters, member_of: string };
const byResources = { ...byAggregate, resources: string };
const nested = { ...byResources, in_tree: uuid };
const byTraits = { ...nested, required: string };
const anySpelling = v.optional(uuidText);
const schemas = [
  { since: since.entityTags, schema: object({ ...byTraits, uuid: anySpelling, in_tree: anySpelling }) },
  { since: since.providersByTraits, schema: object(byTraits) },
  { since: since.nestedProviders, schema: object(nested) },
  { since: since.providersByResources, schema: object(byResources) },
  { since: since.providersByAggregate, schema: object(byAggregate) },
  { since: since.firstVersion, schema: object(parameters) },
] as const;

/**
 * Reads the filters of GET /resource_providers and returns the function that finds the providers, by a fleet whose snapshot is held from
 * the first pause on. Each provider must satisfy all filters by itself, without other providers of its tree.
 *
 * @throws ApiError 400 for parameters that the version does not have, or bad values; the function for names that do not exist
 */
export function filterProviders(query: Query, version: number) {
  const values: Filters['values'] = checkQuery(query, bySince(schemas, version));
  refuseRepeats(query, version);
  const aggregates = parseMemberOf(query, '', version);
  const traits = parseRequired(query, '', version);
  const resources =
    values.resources === undefined ? new Map<string, number>() : parseResources(values.resources, version);
  const providerOf = (fleet: Fleet, sent: string) => firstStored(fleet.byUuid, spellingsAt(version, sent));
  return (fleet: Fleet, turns: Turns) => find(fleet, { values, aggregates, traits, resources, providerOf }, turns);
}

type Filters = Pick<RequestGroup, 'resources' | 'traits' | 'aggregates'> & {
  /** The provider that a UUID names. */
  readonly providerOf: (fleet: Fleet, sent: string) => Provider | undefined;
  readonly values: { readonly [name in keyof typeof byTraits]?: string | undefined };
};

function* find(fleet: Fleet, filters: Filters, turns: Turns): Pieces<readonly Provider[]> {
  const { in_tree: inTree, name, uuid } = filters.values;
  const treeRoot = inTree ? filters.providerOf(fleet, inTree)?.root : undefined;
  if (inTree && treeRoot === undefined) return [];
  const filter = yield* resolve(fleet, filters, treeRoot, turns);
  if (filter === undefined) return [];
  const named = [...(name ? [fleet.byName.get(name)] : []), ...(uuid ? [filters.providerOf(fleet, uuid)] : [])];
  const [first] = named;
  // With both, the name and the UUID must belong to the same provider.
  const isOne = first !== undefined && named.every((provider) => provider === first);
  const only = named.length === 0 ? undefined : new Set(isOne ? [first] : []);
  const { few, isWanted, rounds } = wantedBy(fleet, filter, only);
  const among = treeRoot === undefined ? sortedById(fleet, few) : treeOf(treeRoot);
  return yield* keep(among, isWanted, rounds, turns);
}

/**
 * Looks up the names of the filters, in the order of upstream: where nothing satisfies the filters by traits or by aggregates, its
 * search ends before later names are looked up.
 *
 * @returns undefined where the search ends
 * @throws ApiError 400 for traits and classes that do not exist
 */
function* resolve(
  fleet: Fleet,
  { aggregates, traits, resources }: Filters,
  treeRoot: Provider | undefined,
  turns: Turns,
): Pieces<ProviderFilter | undefined> {
  const before: ProviderFilter[] = [];
  try {
    const { required } = traitIdsOf(fleet, { ...traits, forbidden: [] }, inRequired);
    if (required.length > 0) before.push({ ...anyProvider, traits: { required, forbidden: [] } });
    const { forbidden } = traitIdsOf(fleet, { ...traits, required: [] }, inRequired);
    const { required: memberOf, forbidden: forbiddenAggregates } = aggregates;
    if (memberOf.length > 0) before.push({ ...anyProvider, memberOf });
    const amounts = amountsOf(fleet, resources, 'resources');
    return { resources: amounts, traits: { required, forbidden }, memberOf, forbiddenAggregates, treeRoot };
  } catch (error) {
    for (const { few, isWanted, rounds } of before.map((filter) => wantedBy(fleet, filter))) {
      if ((yield* keep(sortedById(fleet, few), isWanted, rounds, turns)).length === 0) return undefined;
    }
    throw error;
  }
}

/** The requested providers. */
export type Wanted = {
  /**
   * A list that contains all of them; undefined if there is no such list but that of all providers. The sets of the fleet change with
   * it, so they are copied before the first pause.
   */
  readonly few: readonly Provider[] | undefined;
  readonly isWanted: (provider: Provider) => boolean;
  /** How long that takes, in rounds of `Turns.isOver`. */
  readonly rounds: number;
};

/** If at least this share of all providers may match, filtering all providers in order is faster than sorting the matching ones. */
const dense = 1 / 16;

/** The providers that satisfy a filter. @param named the only candidates, if the request names providers */
export function wantedBy(fleet: Fleet, filter: ProviderFilter, named?: ReadonlySet<Provider>): Wanted {
  const checks = checksOf(filter);
  if (named !== undefined) checks.unshift((provider) => named.has(provider));
  let few: FewProviders = { size: dense * fleet.byId.size, list: undefined };
  if (named !== undefined && named.size < few.size) few = { size: named.size, list: () => named };
  const { list } = fewestFor(fleet, filter, few);
  const { traits, memberOf, forbiddenAggregates } = filter;
  return {
    few: list && [...list()],
    isWanted: (provider) => checks.every((holds) => holds(provider)),
    rounds: 1 + checks.length + [...traits.required, traits.forbidden, ...memberOf, forbiddenAggregates].flat().length,
  };
}

/** A list with all of few providers, or all of the fleet, by ascending id. */
const sortedById = (fleet: Fleet, few: readonly Provider[] | undefined): readonly Provider[] =>
  few?.toSorted((one, other) => one.id - other.id) ?? fleet.byId.list();

/** After how many rounds, some 10 microseconds, the loop checks whether the turn is over. */
const roundsPerQuestion = 100;

/** The providers for which a condition holds. @param rounds how long the check of one provider takes, for `Turns.isOver` */
export function* keep(
  providers: readonly Provider[],
  holds: (provider: Provider) => boolean,
  rounds: number,
  turns: Turns,
): Pieces<readonly Provider[]> {
  const matching: Provider[] = [];
  let since = 0;
  for (const provider of providers) {
    if (holds(provider)) matching.push(provider);
    since += rounds;
    if (since < roundsPerQuestion) continue;
    if (turns.isOver(since)) yield;
    since = 0;
  }
  return matching;
}

/** The error for filters that take too much work. */
export const filtersTooWide: TooWide = () =>
  badRequest(
    `The search for resource providers was stopped after ${mostWorkMs / 1000} s of work. Give fewer traits, aggregates or resource ` +
      'classes, or name a tree.',
  );
