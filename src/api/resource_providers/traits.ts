import { laterGeneration } from '../../../db/statements/generations.ts';
import type { ProviderWrite } from '../../../db/statements/providers/provider_write.ts';
import { traitsTagOf } from '../../fleet/model/entity_tags.ts';
import type { Fleet } from '../../fleet/model/fleet.ts';
import { type Name, nameOf } from '../../fleet/model/names.ts';
import type { Provider } from '../../fleet/model/provider.ts';
import { traitsTag } from '../../placement/entity_tag.ts';
import { since } from '../../placement/microversions.ts';
import { bySince } from '../../placement/versions.ts';
import { badRequest, concurrentUpdate } from '../../request/errors.ts';
import type { Answer, ApiRequest, Endpoint } from '../../rest/endpoint.ts';
import { integer, list, object, text } from '../../rest/json_schema.ts';
import { namesText } from '../../rest/schema_complaint.ts';
import { changesToken, echoedTag, modifiedAtMs, newest, requireMatch, tagged, takesIfMatch } from '../answers.ts';
import type { Dependencies } from '../dependencies.ts';
import { deleteJudged, requireGeneration, writeJudged } from './judged_writes.ts';
import { findShownProvider } from './provider.ts';

// Routes

const shared = { path: '/resource_providers/:uuid/traits', since: since.traits } as const;
const rule = 'placement:resource_providers:traits';

export const providerTraitEndpoints: readonly Endpoint<Dependencies>[] = [
  { ...shared, method: 'GET', policy: `${rule}:list`, answersJson: true, handle: show },
  { ...shared, method: 'PUT', policy: `${rule}:update`, wantsJson: true, ...takesIfMatch, handle: replace },
  { ...shared, method: 'DELETE', policy: `${rule}:delete`, ...takesIfMatch, handle: remove },
];

// Request schemas

const replacement = {
  traits: list(text({ minLength: 1, maxLength: 255 })),
  resource_provider_generation: integer(),
};
const replacementSchemas = [
  { since: since.entityTags, schema: object({ ...replacement, ...echoedTag }) },
  { since: since.traits, schema: object(replacement) },
] as const;

// Handlers

async function show(request: ApiRequest, { fleet }: Dependencies): Promise<Answer> {
  const current = await fleet.fresh();
  const provider = findShownProvider(current, request.param('uuid'));
  return {
    ...answer(request, traitsOf(current, provider.traitIds), provider.generation),
    ...changesToken(request, fleet),
  };
}

async function replace(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  // Upstream checks the body before the provider in this request.
  const body = await request.json(bySince(replacementSchemas, request.version));
  const generation = body.resource_provider_generation;
  const { plan } = await writeJudged(dependencies, request, (provider, fleet) => {
    requireTraits(request, provider, fleet);
    requireGeneration(provider, generation);
    const unknown = new Set(body.traits.filter((name) => !fleet.traits.byName.has(name)));
    if (unknown.size > 0) throw badRequest(`No such trait ${namesText([...unknown], String)}`);
    const wanted = new Set(body.traits.flatMap((name) => fleet.traits.byName.get(name)?.id ?? []));
    const traitIds = [...wanted].sort((a, b) => a - b);
    const traits = traitsOf(fleet, traitIds);
    return { traits, write: isSame(traitIds, provider.traitIds) ? undefined : write(fleet, provider, traitIds) };
  });
  return answer(request, plan.traits, plan.write === undefined ? generation : laterGeneration(generation, 1));
}

function remove(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  return deleteJudged(
    dependencies,
    request,
    (provider, fleet) => {
      requireTraits(request, provider, fleet);
      return provider.traitIds.length === 0 ? undefined : write(fleet, provider, []);
    },
    concurrentUpdate,
  );
}

const write = (fleet: Fleet, provider: Provider, traitIds: readonly number[]): ProviderWrite => ({
  kind: 'traits',
  providerId: provider.id,
  uuid: provider.uuid,
  generation: provider.generation,
  traits: traitIds.map((id) => ({ id, name: nameOf(fleet.traits, id) })),
  present: provider.traitIds.flatMap((id) => fleet.traits.byId.get(id) ?? []),
  tag: traitsTagOf(fleet, traitIds),
  tagBefore: traitsTagOf(fleet, provider.traitIds),
});

const requireTraits = (request: ApiRequest, { uuid, traitIds }: Provider, fleet: Fleet): void =>
  requireMatch(request, `What resource provider ${uuid} has as traits`, () => traitsTagOf(fleet, traitIds));

const isSame = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((id, index) => id === b[index]);

// Response shapes

const traitsOf = (fleet: Fleet, ids: readonly number[]): readonly Name[] =>
  ids.flatMap((id) => fleet.traits.byId.get(id) ?? []);

function answer(request: ApiRequest, traits: readonly Name[], generation: number): Answer {
  return {
    status: 200,
    ...tagged(request, { traits: traits.map(({ name }) => name), resource_provider_generation: generation }, () =>
      traitsTag(traits.map(({ name }) => name)),
    ),
    lastModified: newest(traits.map(modifiedAtMs)),
  };
}
