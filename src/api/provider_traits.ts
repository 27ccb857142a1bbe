import { setTraits } from '../../db/statements/set_traits.ts';
import { badRequest, concurrentlyUpdated, conflict, errorCodes, notFound } from '../errors.ts';
import { traitsTagOf } from '../fleet/entity_tags.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { nameOf } from '../fleet/names.ts';
import type { Provider } from '../fleet/provider.ts';
import { integer, list, object, text } from '../schema/json_schema.ts';
import { type Answer, type ApiRequest, type Endpoint, noContent } from './endpoint.ts';
import { echoedTag, requireMatch, tagged, takesIfMatch } from './entity_tags.ts';
import { requireGeneration, writeJudged } from './judged_writes.ts';
import { modifiedAtMs, newest } from './last_modified.ts';
import type { Parts } from './parts.ts';
import { findProvider, noSuchProvider } from './provider.ts';
import { bySince } from './since.ts';

// Routes

const shared = { path: '/resource_providers/:uuid/traits', since: 6 } as const;
const rule = 'placement:resource_providers:traits';

export const providerTraitEndpoints: readonly Endpoint[] = [
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
  { since: 40, schema: object({ ...replacement, ...echoedTag }) },
  { since: 0, schema: object(replacement) },
] as const;

// Handlers

async function show(request: ApiRequest, { fleet }: Parts): Promise<Answer> {
  const current = await fleet.fresh();
  const uuid = request.param('uuid');
  const provider = current.byUuid.get(uuid);
  if (provider === undefined) throw notFound(`${noSuchProvider(uuid)}: ${noSuchProvider(uuid)}`);
  return answer(request, current, provider.traitIds, provider.generation);
}

async function replace(request: ApiRequest, parts: Parts): Promise<Answer> {
  // Upstream looks at the body before the provider here.
  const body = await request.json(bySince(replacementSchemas, request.version));
  const generation = body.resource_provider_generation;
  const uuid = request.param('uuid');
  const judge = (fleet: Fleet) => {
    const provider = findProvider(fleet, uuid);
    requireTraits(request, provider, fleet);
    requireGeneration(provider, generation);
    const unknown = new Set(body.traits.filter((name) => !fleet.traits.byName.has(name)));
    if (unknown.size > 0) throw badRequest(`No such trait ${[...unknown].join(', ')}`);
    const wanted = new Set(body.traits.flatMap((name) => fleet.traits.byName.get(name)?.id ?? []));
    const traitIds = [...wanted].sort((a, b) => a - b);
    return { traitIds, write: isSame(traitIds, provider.traitIds) ? undefined : write(parts, provider, traitIds) };
  };
  const done = await writeJudged(parts, request, judge);
  if (done !== undefined) {
    const { traitIds, write } = done.plan;
    return answer(request, done.shown, traitIds, write === undefined ? generation : generation + 1);
  }
  const after = await parts.fleet.fresh();
  requireTraits(request, findProvider(after, uuid), after);
  throw concurrentUpdate();
}

async function remove(request: ApiRequest, parts: Parts): Promise<Answer> {
  for (;;) {
    const current = await parts.fleet.fresh();
    const provider = findProvider(current, request.param('uuid'));
    requireTraits(request, provider, current);
    if (provider.traitIds.length === 0) return noContent;
    if ((await parts.providerWrites.perform(write(parts, provider, []))) !== undefined) return noContent;
    // Who said what is to be deleted is concerned by another content only, and not by another generation.
    if (request.ifMatch === undefined) throw concurrentUpdate();
  }
}

const write = ({ fleet }: Parts, provider: Provider, traitIds: readonly number[]) =>
  setTraits({
    providerId: provider.id,
    generation: provider.generation,
    serverRun: fleet.moment.serverRun,
    traits: traitIds.map((id) => ({ id, name: nameOf(fleet.known.traits, id) })),
    tag: traitsTagOf(fleet.known, traitIds),
    tagBefore: traitsTagOf(fleet.known, provider.traitIds),
  });

const requireTraits = (request: ApiRequest, { uuid, traitIds }: Provider, fleet: Fleet): void =>
  requireMatch(request, `What resource provider ${uuid} has as traits`, () => traitsTagOf(fleet, traitIds));

const isSame = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((id, place) => id === b[place]);

const concurrentUpdate = () => conflict(concurrentlyUpdated, errorCodes.concurrentUpdate);

// Response shapes

function answer(request: ApiRequest, fleet: Fleet, traitIds: readonly number[], generation: number): Answer {
  const traits = traitIds.flatMap((id) => fleet.traits.byId.get(id) ?? []);
  return {
    status: 200,
    ...tagged(request, { traits: traits.map(({ name }) => name), resource_provider_generation: generation }, () =>
      traitsTagOf(fleet, traitIds),
    ),
    lastModified: newest(traits.map(modifiedAtMs)),
  };
}
