import * as v from 'valibot';
import { setAggregates } from '../../db/statements/set_aggregates.ts';
import { concurrentlyUpdated, conflict, errorCodes } from '../errors.ts';
import { aggregatesTagOf } from '../fleet/entity_tags.ts';
import type { Provider } from '../fleet/provider.ts';
import { aggregatesTag } from '../placement/entity_tag.ts';
import { failed } from '../schema/complaint.ts';
import { integer, list, object, uuidText } from '../schema/json_schema.ts';
import type { Answer, ApiRequest, Endpoint } from './endpoint.ts';
import { echoedTag, requireMatch, tagged, takesIfMatch } from './entity_tags.ts';
import { providerBody, requireGeneration, writeJudged } from './judged_writes.ts';
import type { Parts } from './parts.ts';
import { findProvider } from './provider.ts';
import { bySince } from './since.ts';

// Routes

const shared = { path: '/resource_providers/:uuid/aggregates', since: 1, mediaTypesFirst: true } as const;
const rule = 'placement:resource_providers:aggregates';

export const aggregateEndpoints: readonly Endpoint[] = [
  { ...shared, method: 'GET', policy: `${rule}:list`, answersJson: true, handle: show },
  { ...shared, method: 'PUT', policy: `${rule}:update`, wantsJson: true, ...takesIfMatch, handle: replace },
];

// Request schemas

/** From microversion 1.19 on, the generation of the provider guards its aggregates. */
const guardedSince = 19;

/** Aggregates are kept as they are spelt, in a column of 36 characters; a UUID may be spelt longer, as `urn:uuid:...`. */
const columnLength = 36;
const aggregateUuid = v.pipe(
  uuidText,
  v.check(
    (value) => value.length <= columnLength,
    failed('maxLength', (value) => `${value} is too long`),
  ),
);
const uuids = list(aggregateUuid, { unique: true });
const guarded = { aggregates: uuids, resource_provider_generation: integer() };
const guardedSchemas = [
  { since: 40, schema: object({ ...guarded, ...echoedTag }) },
  { since: guardedSince, schema: object(guarded) },
] as const;

// Handlers

async function show(request: ApiRequest, { fleet }: Parts): Promise<Answer> {
  const provider = findProvider(await fleet.fresh(), request.param('uuid'));
  return answer(request, provider.aggregates, provider.generation);
}

async function replace(request: ApiRequest, parts: Parts): Promise<Answer> {
  if (request.version < guardedSince) return replaceUnguarded(request, parts);
  const uuid = request.param('uuid');
  const body = await providerBody(parts, request, bySince(guardedSchemas, request.version));
  const generation = body.resource_provider_generation;
  const done = await writeJudged(parts, request, (fleet) => {
    const provider = findProvider(fleet, uuid);
    requireAggregates(request, provider);
    requireGeneration(provider, generation);
    const write = setAggregates({
      providerId: provider.id,
      generation,
      serverRun: parts.fleet.moment.serverRun,
      uuids: body.aggregates,
      tag: aggregatesTag(body.aggregates),
      tagBefore: aggregatesTagOf(provider),
      seen: request.ifMatch && provider.aggregates,
    });
    return { write };
  });
  if (done !== undefined) return answer(request, body.aggregates, generation + 1);
  requireAggregates(request, findProvider(await parts.fleet.fresh(), uuid));
  throw conflict(`Update conflict: ${concurrentlyUpdated}`, errorCodes.concurrentUpdate);
}

async function replaceUnguarded(request: ApiRequest, { fleet, providerWrites }: Parts): Promise<Answer> {
  const uuid = request.param('uuid');
  let provider = findProvider(await fleet.fresh(), uuid);
  const wanted = await request.json(uuids);
  const tag = aggregatesTag(wanted);
  for (;;) {
    const tagBefore = aggregatesTagOf(provider);
    const write = setAggregates({ providerId: provider.id, generation: undefined, uuids: wanted, tag, tagBefore });
    if (await providerWrites.perform(write)) return answer(request, wanted, provider.generation);
    // The provider is gone, which is told here, or somebody deleted an aggregate meanwhile, which the next write makes again.
    provider = findProvider(await fleet.fresh(), uuid);
  }
}

const requireAggregates = (request: ApiRequest, provider: Provider): void =>
  requireMatch(request, `What resource provider ${provider.uuid} is a member of`, () => aggregatesTagOf(provider));

// Response shapes

const answer = (request: ApiRequest, aggregates: readonly string[], generation: number): Answer => ({
  status: 200,
  ...tagged(
    request,
    { aggregates, ...(request.version >= guardedSince ? { resource_provider_generation: generation } : {}) },
    () => aggregatesTag(aggregates),
  ),
  lastModified: new Date(),
});
