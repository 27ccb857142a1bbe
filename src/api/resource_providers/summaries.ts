import * as v from 'valibot';
import type { Fleet } from '../../fleet/model/fleet.ts';
import { nameOf } from '../../fleet/model/names.ts';
import { jsonUuid, type Provider } from '../../fleet/model/provider.ts';
import type { InventoryFields } from '../../placement/inventory.ts';
import { since } from '../../placement/microversions.ts';
import { isUuidLike, normalUuid } from '../../placement/uuid.ts';
import { badRequest, noSuchProvider } from '../../request/errors.ts';
import type { Pieces, Turns } from '../../request/turns.ts';
import type { Answer, ApiRequest, Endpoint } from '../../rest/endpoint.ts';
import type { ChunkMaker } from '../../rest/json_body.ts';
import { object, text, uuidText } from '../../rest/json_schema.ts';
import { madeInTurns, writeList } from '../../rest/made_in_turns.ts';
import { parseMemberOf, parseRequired, type Query } from '../../rest/query_string.ts';
import { checkUnrepeated } from '../../rest/schema_check.ts';
import { anyProvider } from '../../search/filters.ts';
import { traitIdsOf } from '../../search/resolve.ts';
import { remembering } from '../../text/cache.ts';
import { asciiJson } from '../../text/strings.ts';
import { changesToken, checkMarker, nextLink, pageParameters, usualLimit } from '../answers.ts';
import type { Dependencies } from '../dependencies.ts';
import { filtersTooWide, inRequired, keep, type Wanted, wantedBy } from './filters.ts';
import { inventoryShape } from './inventory_bodies.ts';
import { findInAnySpelling } from './provider.ts';

// Routes

const path = '/provider_summaries';

export const providerSummaryEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'GET',
    path,
    since: since.consumers,
    policy: 'placement:provider_summaries:list',
    answersJson: true,
    takesParameters: true,
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

// Handlers

async function list(request: ApiRequest, { fleet }: Dependencies): Promise<Answer> {
  const query = request.query();
  // Each value of these narrows the list further, as in GET /resource_providers.
  const { limit = usualLimit, marker } = checkUnrepeated(query, parameters);
  const filter = readFilter(query, request.version);
  const current = await fleet.fresh();
  checkMarker(marker, (uuid) => current.byUuid.has(uuid));
  const wanted = filter(current);
  const token = changesToken(request, fleet);
  const make = (turns: Turns) => write(request, current, wanted, { limit, marker: marker ?? '' }, turns);
  const body = await madeInTurns(request, fleet, make, filtersTooWide);
  return { status: 200, ...body, lastModified: new Date(), ...token };
}

function* write(
  request: ApiRequest,
  fleet: Fleet,
  wanted: Wanted,
  { limit, marker }: { readonly limit: number; readonly marker: string },
  turns: Turns,
): ChunkMaker {
  const textOf = summaryWriter(fleet);
  const found = yield* pageBehind(fleet, wanted, { marker, count: limit + 1 }, turns);
  const page = found.slice(0, limit);
  const last = page.at(-1);
  const links = found.length > limit && last !== undefined ? nextLink(request, path, last.uuid) : undefined;
  const end = links === undefined ? ']}' : `], "provider_summaries_links": ${asciiJson(links)}}`;
  yield* writeList(turns, page, { begin: '{"provider_summaries": [', textOf, separator: ', ', end });
}

/** Reads the filters. @throws ApiError 400, as the function does for names that do not exist. */
function readFilter(query: Query, version: number): (fleet: Fleet) => Wanted {
  const uuids = readUuids(query.last('uuid'));
  const inTree = query.last('in_tree');
  const traits = parseRequired(query, '', version);
  const aggregates = parseMemberOf(query, '', version);
  return (fleet) => {
    const filter = {
      ...anyProvider,
      traits: traitIdsOf(fleet, traits, inRequired),
      memberOf: aggregates.required,
      forbiddenAggregates: aggregates.forbidden,
    };
    const named = uuids && new Set(uuids.flatMap((uuid) => findInAnySpelling(fleet, uuid) ?? []));
    return wantedBy(fleet, { ...filter, treeRoot: inTree === undefined ? undefined : rootOf(fleet, inTree) }, named);
  };
}

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

/**
 * The first `count` of the wanted providers behind the marker, in the order of UUIDs. It may pause where the snapshot of the fleet is
 * held.
 */
function* pageBehind(
  fleet: Fleet,
  { few, isWanted, rounds }: Wanted,
  { marker, count }: { readonly marker: string; readonly count: number },
  turns: Turns,
): Pieces<readonly Provider[]> {
  if (few !== undefined) {
    const behind = yield* keep(few, (provider) => provider.uuid > marker && isWanted(provider), rounds, turns);
    return behind.toSorted((a, b) => (a.uuid < b.uuid ? -1 : 1)).slice(0, count);
  }
  const { byUuid } = fleet;
  const page: Provider[] = [];
  const isFull = (provider: Provider | undefined): boolean =>
    provider !== undefined && isWanted(provider) && page.push(provider) === count;
  const uuids = fleet.inUuidOrder.after(marker);
  // A loop with `of` would end them.
  for (let next = uuids.next(); !next.done; next = uuids.next()) {
    if (isFull(byUuid.get(next.value))) return page;
    if (turns.isOver(rounds)) break;
  }
  // The order of UUIDs changes with the fleet, so the other providers are listed before the first pause.
  const others = Array.from(uuids, (uuid) => byUuid.get(uuid));
  for (const provider of others) {
    if (turns.isOver(rounds)) yield;
    if (isFull(provider)) return page;
  }
  return page;
}

/**
 * Writes whole providers as JSON. Many hosts have equal inventories, traits and aggregates. The fleet keeps each of these
 * lists once for all providers that have it, and so its text is made only once as well. The names are the present ones, also when the fleet
 * has changed.
 */
function summaryWriter({ traits, classes }: Fleet): (provider: Provider) => string {
  const inventoryText = remembering((fields: InventoryFields) => asciiJson(inventoryShape(fields)));
  const traitsText = remembering((ids: readonly number[]) => asciiJson(ids.map((id) => nameOf(traits, id))));
  const aggregatesText = remembering((uuids: readonly string[]) => asciiJson(uuids));
  const className = remembering((id: number) => asciiJson(nameOf(classes, id)));
  return (provider) => {
    let inventories = '';
    let usages = '';
    for (const { fields, used } of provider.inventories) {
      const comma = usages === '' ? '' : ', ';
      const name = className(fields.classId);
      inventories += `${comma}${name}: ${inventoryText(fields)}`;
      usages += `${comma}${name}: ${used}`;
    }
    const parent = provider.parent === undefined ? 'null' : `"${jsonUuid(provider.parent)}"`;
    return (
      `{"uuid": "${jsonUuid(provider)}", "name": ${asciiJson(provider.name)}, "generation": ${provider.generation}, ` +
      `"parent_provider_uuid": ${parent}, "root_provider_uuid": "${jsonUuid(provider.root)}", ` +
      `"inventories": {${inventories}}, "usages": {${usages}}, "traits": ${traitsText(provider.traitIds)}, ` +
      `"aggregates": ${aggregatesText(provider.aggregates)}}`
    );
  };
}
