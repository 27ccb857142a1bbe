import { randomUUID } from 'node:crypto';
import * as v from 'valibot';
import { hasSqlstate, sqlstate } from '../../db/sqlstate.ts';
import { createProvider } from '../../db/statements/create_provider.ts';
import { deleteProvider } from '../../db/statements/delete_provider.ts';
import { badRequest, conflict, errorCodes, notFound } from '../errors.ts';
import { newProviderTags, providerTagOf } from '../fleet/entity_tags.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { FleetKeeper } from '../fleet/keeper.ts';
import type { Provider } from '../fleet/provider.ts';
import { normalUuid } from '../placement/uuid.ts';
import { integer, list as listOf, object, text, uuidText } from '../schema/json_schema.ts';
import { type Answer, type ApiRequest, type Endpoint, noContent } from './endpoint.ts';
import { echoedTag, requireMatch, tagged, takesIfMatch } from './entity_tags.ts';
import { modifiedAtMs, newest } from './last_modified.ts';
import type { Parts } from './parts.ts';
import { findProvider } from './provider.ts';
import { filterProviders } from './provider_filters.ts';
import { saveProvider, seenOf } from './provider_update.ts';
import { bySince } from './since.ts';

// Routes

const path = '/resource_providers';
const one = `${path}/:uuid`;
const rule = (verb: string) => `placement:resource_providers:${verb}`;

export const resourceProviderEndpoints: readonly Endpoint[] = [
  { method: 'GET', path, since: 0, policy: rule('list'), answersJson: true, handle: list },
  { method: 'POST', path, since: 0, policy: rule('create'), wantsJson: true, handle: create },
  { method: 'GET', path: one, since: 0, policy: rule('show'), answersJson: true, handle: show },
  { method: 'DELETE', path: one, since: 0, policy: rule('delete'), ...takesIfMatch, handle: remove },
  { method: 'PUT', path: one, since: 0, policy: rule('update'), wantsJson: true, ...takesIfMatch, handle: update },
];

// Request schemas

/** Microversion 1.14 brought nested providers. */
const nestedSince = 14;
/** Microversion 1.20 answers a POST with the provider. */
const answeredPostSince = 20;

const name = text({ maxLength: 200 });
const parent = v.optional(v.nullable(uuidText));
const creation = object({ name, uuid: v.optional(uuidText) });
const nestedCreation = object({ name, uuid: v.optional(uuidText), parent_provider_uuid: parent });
const change = { name };
const nestedChange = { ...change, parent_provider_uuid: parent };
/** What else is shown of a provider: from 1.40 on it may be sent back with the change, and is ignored but for the UUID. */
const echoed = {
  uuid: v.optional(uuidText),
  generation: v.optional(integer()),
  links: v.optional(listOf(object({ rel: text(), href: text() }))),
  root_provider_uuid: v.optional(uuidText),
  ...echoedTag,
};
const changeSchemas = [
  { since: 40, schema: object({ ...nestedChange, ...echoed }) },
  { since: nestedSince, schema: object(nestedChange) },
  { since: 0, schema: object(change) },
] as const;

// Handlers

async function list(request: ApiRequest, { fleet }: Parts): Promise<Answer> {
  const filter = filterProviders(request.query(), request.version);
  const providers = filter(await fleet.fresh());
  return {
    status: 200,
    json: { resource_providers: providers.map((provider) => represent(provider, request).json) },
    lastModified: newest(providers.map(modifiedAtMs)),
  };
}

async function show(request: ApiRequest, { fleet }: Parts): Promise<Answer> {
  const provider = findProvider(await fleet.fresh(), request.param('uuid'));
  return { status: 200, ...represent(provider, request), lastModified: newest([modifiedAtMs(provider)]) };
}

async function create(request: ApiRequest, { fleet, providerWrites }: Parts): Promise<Answer> {
  const body = await request.json<typeof creation | typeof nestedCreation>(
    request.version >= nestedSince ? nestedCreation : creation,
  );
  const parentUuid = ('parent_provider_uuid' in body ? body.parent_provider_uuid : null) ?? null;
  const uuid = body.uuid === undefined ? randomUUID() : normalUuid(body.uuid);
  const refuse = (reason: string) =>
    badRequest(
      `Unable to create resource provider "${body.name}", ${uuid}: Object action create failed because: ${reason}`,
    );
  if (body.name === '') throw refuse('name is required');
  if (parentUuid === uuid) {
    throw refuse(
      'parent provider UUID cannot be same as UUID. Please set parent provider UUID to None if there is no parent.',
    );
  }
  const noParent = () => refuse('parent provider UUID does not exist.');
  const parent = parentUuid === null ? undefined : await findParent(fleet, parentUuid);
  if (parentUuid !== null && parent === undefined) throw noParent();
  const tags = newProviderTags({ uuid, name: body.name, parentUuid: parent?.uuid ?? null });
  let shown: Fleet | undefined;
  try {
    shown = await providerWrites.perform(createProvider({ uuid, name: body.name, parent, tags }));
  } catch (error) {
    if (!hasSqlstate(error, sqlstate.uniqueViolation)) throw error;
    // Where both clash it is the name that is told, as upstream does on PostgreSQL.
    const clash = (await fleet.fresh()).byName.has(body.name) ? `name: ${body.name}` : `uuid: ${uuid}`;
    throw conflict(`Conflicting resource provider ${clash} already exists.`, errorCodes.duplicateName);
  }
  if (shown === undefined) throw noParent();
  const location = `/resource_providers/${uuid}`;
  if (request.version < answeredPostSince) return { status: 201, location };
  const provider = findProvider(shown, uuid);
  return { status: 200, location, ...represent(provider, request), lastModified: newest([modifiedAtMs(provider)]) };
}

/** The parent of a new provider as it is known, which the write proves, or as it is now. */
const findParent = async (fleet: FleetKeeper, uuid: string): Promise<Provider | undefined> =>
  fleet.known.byUuid.get(uuid) ?? (await fleet.fresh()).byUuid.get(uuid);

async function update(request: ApiRequest, parts: Parts): Promise<Answer> {
  const uuid = request.param('uuid');
  findProvider(await parts.fleet.fresh(), uuid);
  const body = await request.json(bySince(changeSchemas, request.version));
  if ('uuid' in body && body.uuid !== undefined && normalUuid(body.uuid) !== uuid) {
    throw badRequest(
      `The body is of resource provider ${body.uuid}, and the path of ${uuid}; a UUID cannot be changed.`,
    );
  }
  const { provider, previouslyUpdatedAtSeconds } = await saveProvider(parts, uuid, body, request);
  return {
    status: 200,
    ...represent(provider, request),
    lastModified: previouslyUpdatedAtSeconds === undefined ? null : new Date(previouslyUpdatedAtSeconds * 1000),
  };
}

async function remove(request: ApiRequest, { database, fleet }: Parts): Promise<Answer> {
  const uuid = request.param('uuid');
  for (;;) {
    const provider = (await fleet.fresh()).byUuid.get(uuid);
    if (provider === undefined) throw nothingToDelete(uuid);
    requireMatch(request, `Resource provider ${uuid}`, () => providerTagOf(provider));
    const seen = request.ifMatch && seenOf(provider);
    switch (await deleteProvider(database, provider.id, seen)) {
      case 'gone':
        throw nothingToDelete(uuid);
      case 'has children':
        throw conflict(
          `Unable to delete parent resource provider ${uuid}: It has child resource providers.`,
          errorCodes.cannotDeleteParent,
        );
      case 'in use':
        throw conflict(
          `Unable to delete resource provider ${uuid}: Resource provider has allocations.`,
          errorCodes.providerInUse,
        );
      case 'deleted':
        return noContent;
      case 'changed':
        continue;
    }
  }
}

const nothingToDelete = (uuid: string) => notFound(`No resource provider with uuid ${uuid} found for delete`);

// Response shapes

/** The links of a provider, each from the version that brought what it leads to. */
const links: readonly (readonly [rel: string, since: number])[] = [
  ['inventories', 0],
  ['usages', 0],
  ['aggregates', 1],
  ['traits', 6],
  ['allocations', 11],
];

const represent = (provider: Provider, request: ApiRequest) =>
  tagged(request, shape(provider, request), () => providerTagOf(provider));

function shape(provider: Provider, request: ApiRequest) {
  const self = `${request.prefix}/resource_providers/${provider.uuid}`;
  return {
    uuid: provider.uuid,
    name: provider.name,
    generation: provider.generation,
    links: [
      { rel: 'self', href: self },
      ...links.filter(([, since]) => since <= request.version).map(([rel]) => ({ rel, href: `${self}/${rel}` })),
    ],
    ...(request.version >= nestedSince
      ? { parent_provider_uuid: provider.parent?.uuid ?? null, root_provider_uuid: provider.root.uuid }
      : {}),
  };
}
