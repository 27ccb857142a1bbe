import { setAggregates } from '../../db/statements/set_aggregates.ts';
import { conflict, errorCodes } from '../errors.ts';
import { integer, list, object, uuidText } from '../schema/json_schema.ts';
import type { Answer, ApiRequest, Endpoint } from './endpoint.ts';
import type { Parts } from './parts.ts';
import { findProvider } from './provider.ts';

// Routes

const shared = { path: '/resource_providers/:uuid/aggregates', since: 1, mediaTypesFirst: true } as const;
const rule = 'placement:resource_providers:aggregates';

export const aggregateEndpoints: readonly Endpoint[] = [
  { ...shared, method: 'GET', policy: `${rule}:list`, answersJson: true, handle: show },
  { ...shared, method: 'PUT', policy: `${rule}:update`, wantsJson: true, handle: replace },
];

// Request schemas

/** From microversion 1.19 on, the generation of the provider guards its aggregates. */
const guardedSince = 19;

const uuids = list(uuidText, { unique: true });
const guarded = object({ aggregates: uuids, resource_provider_generation: integer() });

// Handlers

async function show(request: ApiRequest, { fleet }: Parts): Promise<Answer> {
  const provider = findProvider(await fleet.fresh(), request.param('uuid'));
  return answer(request, provider.aggregates, provider.generation);
}

async function replace(request: ApiRequest, { database, fleet }: Parts): Promise<Answer> {
  const provider = findProvider(await fleet.fresh(), request.param('uuid'));
  if (request.version < guardedSince) {
    const wanted = await request.json(uuids);
    await setAggregates(database, { providerId: provider.id, generation: undefined, uuids: wanted });
    return answer(request, wanted, provider.generation);
  }
  const body = await request.json(guarded);
  const generation = body.resource_provider_generation;
  if (provider.generation !== generation) {
    throw conflict(
      "Resource provider's generation already changed. Please update the generation and try again.",
      errorCodes.concurrentUpdate,
    );
  }
  const done = await setAggregates(database, { providerId: provider.id, generation, uuids: body.aggregates });
  if (!done) {
    throw conflict(
      'Update conflict: Another thread concurrently updated the resource provider data. Please retry your update',
      errorCodes.concurrentUpdate,
    );
  }
  return answer(request, body.aggregates, generation + 1);
}

// Response shapes

const answer = (request: ApiRequest, aggregates: readonly string[], generation: number): Answer => ({
  status: 200,
  json: {
    aggregates,
    ...(request.version >= guardedSince ? { resource_provider_generation: generation } : {}),
  },
  lastModified: new Date(),
});
