import * as v from 'valibot';
import { jsonWriter } from '../candidates/json_writer.ts';
import { hasAnyTrait, hasRequiredTraits, isInAny, isMemberOf } from '../fleet/filters.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { type Provider, treeOf } from '../fleet/provider.ts';
import { isUuidLike, normalUuid } from '../placement/uuid.ts';
import type { Answer, ApiRequest, Endpoint } from '../rest/endpoint.ts';
import { badRequest, noSuchProvider } from '../rest/errors.ts';
import { type ChunkMaker, jsonBody } from '../rest/json_body.ts';
import { object, text, uuidText } from '../rest/json_schema.ts';
import { since } from '../rest/microversions.ts';
import { checkQuery, refuseRepeated } from '../rest/query_schema.ts';
import type { Query } from '../rest/query_string.ts';
import { parseMemberOf, parseRequired } from '../rest/query_values.ts';
import { asciiJson } from '../text/ascii_json.ts';
import { changesToken } from './changes_token.ts';
import type { Dependencies } from './dependencies.ts';
import { checkMarker, nextLink, pageParameters, usualLimit } from './pages.ts';
import { findInAnySpelling } from './provider.ts';
import { requiredTraitId } from './provider_filters.ts';
import { summaryWriter } from './provider_summary_text.ts';

// Routes

const path = '/provider_summaries';

export const providerSummaryEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'GET',
    path,
    since: since.consumers,
    policy: 'placement:provider_summaries:list',
    answersJson: true,
    handle: list,
  },
];

// Request schemas

const parameters = object({
  uuid: v.optional(text()),
  in_tree: v.optional(uuidText),
  member_of: v.optional(text()),
  required: v.optional(text()),
  ...pageParameters(10_000),
});

/** Parameters that must not be repeated. The others may be, as in GET /resource_providers. */
const single = ['uuid', 'in_tree', 'limit', 'marker'];

// Handlers

async function list(request: ApiRequest, { fleet }: Dependencies): Promise<Answer> {
  const query = request.query();
  const { limit = usualLimit, marker } = checkQuery(query, parameters);
  refuseRepeated(query, single);
  const filter = readFilter(query, request.version);
  const current = await fleet.fresh();
  checkMarker(marker, (uuid) => current.byUuid.has(uuid));
  const found = pageBehind(current, filter(current), marker ?? '', limit + 1);
  const page = found.slice(0, limit);
  const last = page.at(-1);
  const links = found.length > limit && last !== undefined ? nextLink(request, path, last.uuid) : undefined;
  return {
    status: 200,
    body: await jsonBody(answerText(current, page, links), fleet.hold, request.turns()),
    lastModified: new Date(),
    ...changesToken(request, fleet),
  };
}

/** Which providers are asked for. */
type Wanted = {
  /** A set that contains all of them; undefined if there is no such set but all providers. */
  readonly among: { readonly size: number; readonly providers: Iterable<Provider> } | undefined;
  readonly isWanted: (provider: Provider) => boolean;
};

/** Reads the filters. @throws ApiError 400, as the function does for names that do not exist. */
function readFilter(query: Query, version: number): (fleet: Fleet) => Wanted {
  const uuids = readUuids(query.last('uuid'));
  const inTree = query.last('in_tree');
  const traits = parseRequired(query, '', version);
  const aggregates = parseMemberOf(query, '', version);
  return (fleet) => {
    const required = traits.required.map((anyOf) => anyOf.map((name) => requiredTraitId(fleet, name)));
    const forbidden = traits.forbidden.map((name) => requiredTraitId(fleet, name));
    const named = uuids && new Set(uuids.flatMap((uuid) => findInAnySpelling(fleet, uuid) ?? []));
    const root = inTree === undefined ? undefined : rootOf(fleet, inTree);
    const sets = [
      ...(named === undefined ? [] : [{ size: named.size, providers: named }]),
      ...(root === undefined ? [] : [sized(new Set(treeOf(root)))]),
      ...(required.length === 0 ? [] : [sized(fleet.withTrait.smallest(required))]),
      ...(aggregates.required.length === 0 ? [] : [sized(fleet.inAggregate.smallest(aggregates.required))]),
    ];
    return {
      among: sets.toSorted((a, b) => a.size - b.size)[0],
      isWanted: (provider) =>
        (named === undefined || named.has(provider)) &&
        (root === undefined || provider.root === root) &&
        hasRequiredTraits(provider.traitIds, required) &&
        !hasAnyTrait(provider.traitIds, forbidden) &&
        isMemberOf(provider, aggregates.required) &&
        !isInAny(provider, aggregates.forbidden),
    };
  };
}

const sized = <Set extends Iterable<Provider> & { readonly size: number }>(providers: Set) => ({
  size: providers.size,
  providers,
});

/** The UUIDs of `A` or `in:A,B`. */
function readUuids(value: string | undefined): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const uuids = value.startsWith('in:') ? value.slice('in:'.length).split(',') : [value];
  const wrong = uuids.find((uuid) => !isUuidLike(uuid));
  if (wrong === undefined) return uuids;
  throw badRequest(
    `Invalid query string parameters: Expected 'uuid' parameter to be a UUID, or 'in:' and several. Got: ${wrong}`,
  );
}

function rootOf(fleet: Fleet, uuid: string): Provider {
  const node = findInAnySpelling(fleet, uuid);
  if (node !== undefined) return node.root;
  throw badRequest(
    `Invalid query string parameters: 'in_tree' is of no provider. ${noSuchProvider(normalUuid(uuid))}.`,
  );
}

/** If at least this share of all providers may be wanted, going through all of them in order soon fills a page. */
const dense = 1 / 16;

/** The first `count` of the wanted providers behind the marker, in the order of UUIDs. */
function pageBehind(fleet: Fleet, { among, isWanted }: Wanted, marker: string, count: number): readonly Provider[] {
  if (among !== undefined && among.size < dense * fleet.byId.size) {
    return [...among.providers]
      .filter((provider) => provider.uuid > marker && isWanted(provider))
      .sort((a, b) => (a.uuid < b.uuid ? -1 : 1))
      .slice(0, count);
  }
  const page: Provider[] = [];
  for (const uuid of fleet.inUuidOrder.after(marker)) {
    const provider = fleet.byUuid.get(uuid);
    if (provider === undefined || !isWanted(provider)) continue;
    if (page.push(provider) === count) break;
  }
  return page;
}

// Response shapes

/** Between two chunks the fleet may change, if its moment is held (src/fleet/held_moments.ts). */
function* answerText(
  fleet: Fleet,
  page: readonly Provider[],
  links: ReturnType<typeof nextLink> | undefined,
): ChunkMaker {
  const json = jsonWriter();
  const textOf = summaryWriter(fleet);
  let separator = '';
  json.text('{"provider_summaries": [');
  for (const provider of page) {
    json.text(separator + textOf(provider));
    separator = ', ';
    if (json.isFull()) yield json.take();
  }
  json.text(links === undefined ? ']}' : `], "provider_summaries_links": ${asciiJson(links)}}`);
  yield json.take();
}
