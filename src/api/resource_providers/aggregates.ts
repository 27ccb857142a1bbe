import * as v from 'valibot';
import { laterGeneration } from '../../../db/statements/generations.ts';
import { aggregatesTagOf } from '../../fleet/model/entity_tags.ts';
import type { Provider } from '../../fleet/model/provider.ts';
import { aggregatesTag } from '../../placement/entity_tag.ts';
import { since } from '../../placement/microversions.ts';
import { bySince } from '../../placement/versions.ts';
import type { Answer, ApiRequest, Endpoint } from '../../rest/endpoint.ts';
import { integer, list, object, uuidText } from '../../rest/json_schema.ts';
import { failed } from '../../rest/schema_complaint.ts';
import { changesToken, echoedTag, requireMatch, tagged, takesIfMatch } from '../answers.ts';
import type { Dependencies } from '../dependencies.ts';
import { providerBody, requireGeneration, writeJudged } from './judged_writes.ts';
import { findProvider } from './provider.ts';

// Routes

const shared = {
  path: '/resource_providers/:uuid/aggregates',
  since: since.aggregates,
  mediaTypesFirst: true,
} as const;
const rule = 'placement:resource_providers:aggregates';

export const aggregateEndpoints: readonly Endpoint<Dependencies>[] = [
  { ...shared, method: 'GET', policy: `${rule}:list`, answersJson: true, handle: show },
  { ...shared, method: 'PUT', policy: `${rule}:update`, wantsJson: true, ...takesIfMatch, handle: replace },
];

// Request schemas

/** The length of the column, in characters. */
const columnLength = 36;
/**
 * The UUID of an aggregate. It is stored as the client spells it, so a longer spelling, such as `urn:uuid:...`, is refused.
 */
export const aggregateUuid = v.pipe(
  uuidText,
  v.check(
    (value) => value.length <= columnLength,
    failed('maxLength', (value) => `${value} is too long`),
  ),
);
const uuids = list(aggregateUuid, { unique: true });
const guarded = { aggregates: uuids, resource_provider_generation: integer() };
const guardedSchemas = [
  { since: since.entityTags, schema: object({ ...guarded, ...echoedTag }) },
  { since: since.guardedAggregates, schema: object(guarded) },
] as const;

// Handlers

async function show(request: ApiRequest, { fleet }: Dependencies): Promise<Answer> {
  const provider = findProvider(await fleet.fresh(), request.param('uuid'));
  return { ...answer(request, provider.aggregates, provider.generation), ...changesToken(request, fleet) };
}

async function replace(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  if (request.version < since.guardedAggregates) return replaceUnguarded(request, dependencies);
  const body = await providerBody(dependencies, request, bySince(guardedSchemas, request.version));
  const generation = body.resource_provider_generation;
  await writeJudged(dependencies, request, (provider) => {
    requireMatch(request, `What resource provider ${provider.uuid} is a member of`, () => aggregatesTagOf(provider));
    requireGeneration(provider, generation);
    return {
      write: { kind: 'aggregates', generation, present: provider.aggregates, ...wanted(provider, body.aggregates) },
    };
  });
  return answer(request, body.aggregates, laterGeneration(generation, 1));
}

async function replaceUnguarded(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  findProvider(await dependencies.fleet.fresh(), request.param('uuid'));
  const requested = await request.json(uuids);
  // It is not done where the provider was deleted, where another server took over, or where an aggregate was deleted,
  // which the next write creates again.
  await writeJudged(dependencies, request, (provider) => ({
    write: { kind: 'last aggregates', ...wanted(provider, requested) },
  }));
  return answer(request, requested, undefined);
}

const wanted = (provider: Provider, uuids: readonly string[]) => ({
  providerId: provider.id,
  uuid: provider.uuid,
  uuids,
  tag: aggregatesTag(uuids),
  tagBefore: aggregatesTagOf(provider),
});

// Response shapes

/** @param generation not shown at versions whose writes it does not guard */
const answer = (request: ApiRequest, aggregates: readonly string[], generation: number | undefined): Answer => ({
  status: 200,
  ...tagged(
    request,
    { aggregates, ...(request.version >= since.guardedAggregates ? { resource_provider_generation: generation } : {}) },
    () => aggregatesTag(aggregates),
  ),
  lastModified: new Date(),
});
