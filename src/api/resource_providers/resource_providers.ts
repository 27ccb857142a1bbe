import { randomUUID } from 'node:crypto';
import * as v from 'valibot';
import { deleteProvider } from '../../../db/statements/providers/delete_provider.ts';
import type { JudgedRow } from '../../../db/statements/providers/judged_provider.ts';
import type { ProviderWrite } from '../../../db/statements/providers/provider_write.ts';
import { moveProvider, renameProvider } from '../../../db/statements/providers/update_provider.ts';
import type { FleetKeeper } from '../../fleet/keep/keeper.ts';
import { newProviderTags, providerTagOf } from '../../fleet/model/entity_tags.ts';
import type { Fleet } from '../../fleet/model/fleet.ts';
import { type Provider, subtreeOf, treeOf } from '../../fleet/model/provider.ts';
import { since } from '../../placement/microversions.ts';
import { isSameUuid, normalUuid } from '../../placement/uuid.ts';
import { bySince } from '../../placement/versions.ts';
import { badRequest, conflict, errorCodes, notFound } from '../../request/errors.ts';
import type { Pieces, Turns } from '../../request/turns.ts';
import { untilDone } from '../../request/until_done.ts';
import { type Answer, type ApiRequest, type Endpoint, noContent } from '../../rest/endpoint.ts';
import type { ChunkMaker } from '../../rest/json_body.ts';
import { integer, list as listOf, object, text, uuidText } from '../../rest/json_schema.ts';
import { type ListForm, listText, madeInTurns, shortListItems, writeList } from '../../rest/made_in_turns.ts';
import { changesToken, echoedTag, modifiedAtMs, newest, requireMatch, takesIfMatch } from '../answers.ts';
import type { Dependencies } from '../dependencies.ts';
import { providerAsWritten, providerWriter, represent, type ShownProvider, shownProvider } from './answers.ts';
import { filterProviders, filtersTooWide } from './filters.ts';
import { findProvider, judgedNodes } from './provider.ts';

// Routes

const all = { path: '/resource_providers', since: since.firstVersion } as const;
const one = { path: '/resource_providers/:uuid', since: since.firstVersion } as const;
const rule = (verb: string) => `placement:resource_providers:${verb}`;

export const resourceProviderEndpoints: readonly Endpoint<Dependencies>[] = [
  { ...all, method: 'GET', policy: rule('list'), answersJson: true, takesParameters: true, handle: list },
  { ...all, method: 'POST', policy: rule('create'), wantsJson: true, handle: create },
  { ...one, method: 'GET', policy: rule('show'), answersJson: true, handle: show },
  { ...one, method: 'DELETE', policy: rule('delete'), ...takesIfMatch, handle: remove },
  { ...one, method: 'PUT', policy: rule('update'), wantsJson: true, ...takesIfMatch, handle: update },
];

// Request schemas

const name = text({ maxLength: 200 });
const parent = v.optional(v.nullable(uuidText));
const creation = object({ name, uuid: v.optional(uuidText) });
const nestedCreation = object({ name, uuid: v.optional(uuidText), parent_provider_uuid: parent });
const change = { name };
const nestedChange = { ...change, parent_provider_uuid: parent };
/**
 * The other fields that GET shows. From 2.1 on a client may send them back with a change; all but the UUID are
 * ignored.
 */
const echoed = {
  uuid: v.optional(uuidText),
  generation: v.optional(integer()),
  links: v.optional(listOf(object({ rel: text(), href: text() }))),
  root_provider_uuid: v.optional(uuidText),
  ...echoedTag,
};
const changeSchemas = [
  { since: since.entityTags, schema: object({ ...nestedChange, ...echoed }) },
  { since: since.nestedProviders, schema: object(nestedChange) },
  { since: since.firstVersion, schema: object(change) },
] as const;

// Handlers

async function list(request: ApiRequest, { fleet }: Dependencies): Promise<Answer> {
  const find = filterProviders(request.query(), request.version);
  const current = await fleet.fresh();
  const token = changesToken(request, fleet);
  const turns = request.turns();
  const work = find(current, turns);
  turns.begin();
  const step = work.next();
  turns.end();
  if (step.done && step.value.length <= shortListItems) {
    const body = listText(step.value, listForm(request));
    return { status: 200, body, lastModified: newest(step.value.map(modifiedAtMs)), ...token };
  }
  let lastModified: Date | undefined;
  const note = (providers: readonly Provider[]): void => {
    lastModified = newest(providers.map(modifiedAtMs));
  };
  const body = await madeInTurns(request, fleet, () => write(request, step, work, turns, note), filtersTooWide);
  return { status: 200, ...body, ...(lastModified === undefined ? {} : { lastModified }), ...token };
}

/** @param note called with the providers before the first of them is written */
function* write(
  request: ApiRequest,
  step: IteratorResult<undefined, readonly Provider[]>,
  work: Pieces<readonly Provider[]>,
  turns: Turns,
  note: (providers: readonly Provider[]) => void,
): ChunkMaker {
  if (!step.done) yield;
  const providers = step.done ? step.value : yield* work;
  note(providers);
  yield* writeList(turns, providers, listForm(request));
}

const listForm = (request: ApiRequest): ListForm<Provider> => ({
  begin: '{"resource_providers":[',
  textOf: providerWriter(request),
  separator: ',',
  end: ']}',
});

async function show(request: ApiRequest, { fleet }: Dependencies): Promise<Answer> {
  const provider = findProvider(await fleet.fresh(), request.param('uuid'));
  return {
    status: 200,
    ...represent(shownProvider(provider), request),
    lastModified: newest([modifiedAtMs(provider)]),
    ...changesToken(request, fleet),
  };
}

async function create(request: ApiRequest, { fleet, providerWrites }: Dependencies): Promise<Answer> {
  const body = await request.json<typeof creation | typeof nestedCreation>(
    request.version >= since.nestedProviders ? nestedCreation : creation,
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
  const write: ProviderWrite =
    parent === undefined
      ? { kind: 'root', uuid, name: body.name, tags }
      : { kind: 'child', uuid, name: body.name, tags, parent };
  const shown = await untilDone(async () => {
    const written = await providerWrites.perform(write);
    if (written !== undefined) return written;
    const { byName, byUuid } = await fleet.fresh();
    if (parentUuid !== null && !byUuid.has(parentUuid)) throw noParent();
    // Where both are taken the error names the name, as upstream's does on PostgreSQL.
    const clash = byName.has(body.name) ? `name: ${body.name}` : byUuid.has(uuid) ? `uuid: ${uuid}` : undefined;
    if (clash === undefined) return undefined; // the provider that was in the way has been deleted meanwhile
    throw conflict(`Conflicting resource provider ${clash} already exists.`, errorCodes.duplicateName);
  });
  const location = `/resource_providers/${uuid}`;
  if (request.version < since.createdProviderShown) return { status: 201, location };
  const present = shown.byUuid.get(uuid);
  const made = providerAsWritten(shown, { uuid, name: body.name, generation: 0, parent });
  const lastModified = newest(present === undefined ? [] : [modifiedAtMs(present)]);
  return { status: 200, location, ...represent(made, request), lastModified };
}

/**
 * The parent of a new provider. The fleet in memory is enough, since the write proves it; a parent that it does not
 * have is searched for after a refresh.
 */
const findParent = async (fleet: FleetKeeper, uuid: string): Promise<Provider | undefined> =>
  fleet.known.byUuid.get(uuid) ?? (await fleet.fresh()).byUuid.get(uuid);

async function update(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const uuid = request.param('uuid');
  findProvider(await dependencies.fleet.fresh(), uuid);
  const body = await request.json(bySince(changeSchemas, request.version));
  if ('uuid' in body && body.uuid !== undefined && !isSameUuid(body.uuid, uuid)) {
    throw badRequest(
      `The body is of resource provider ${body.uuid}, and the path of ${uuid}; a UUID cannot be changed.`,
    );
  }
  const { provider, previouslyUpdatedAtSeconds } = await saveProvider(dependencies, uuid, body, request);
  return {
    status: 200,
    ...represent(provider, request),
    lastModified: previouslyUpdatedAtSeconds === undefined ? null : new Date(previouslyUpdatedAtSeconds * 1000),
  };
}

async function remove(request: ApiRequest, { database, fleet }: Dependencies): Promise<Answer> {
  const uuid = request.param('uuid');
  return untilDone(async () => {
    const current = await fleet.fresh();
    const provider = current.byUuid.get(uuid);
    if (provider === undefined) throw nothingToDelete(uuid);
    requireMatch(request, `Resource provider ${uuid}`, () => providerTagOf(provider));
    switch (await deleteProvider(database, judgedRow(current, provider, request))) {
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
        return undefined;
    }
  });
}

const nothingToDelete = (uuid: string) => notFound(`No resource provider with uuid ${uuid} found for delete`);

type ProviderChange = { readonly name: string; readonly parent_provider_uuid?: string | null | undefined };

/**
 * Sets the name of a provider and, where the change has the key, its parent. A change of the parent is judged by the shape of
 * the trees. It is written only where the trees still have this shape, and judged again otherwise; the same holds for
 * If-Match.
 *
 * @returns the provider as it was written, and when it had been updated before
 * @throws ApiError 400 for a move that is not allowed, 404, 409 for a name that is taken, or 412.
 */
async function saveProvider(
  { database, fleet }: Dependencies,
  uuid: string,
  change: ProviderChange,
  request: ApiRequest,
): Promise<{ provider: ShownProvider; previouslyUpdatedAtSeconds: number | undefined }> {
  return untilDone(async () => {
    const current = await fleet.fresh();
    const provider = findProvider(current, uuid);
    const previouslyUpdatedAtSeconds = provider.updatedAtSeconds;
    const { generation } = provider;
    requireMatch(request, `Resource provider ${uuid}`, () => providerTagOf(provider));
    const row = judgedRow(current, provider, request);
    // If the request names the present parent, the write proves that no other request moves the provider meanwhile.
    const seenParent = { parentUuid: provider.parent?.uuid ?? null, ...row.seen };
    const parent = judgeParent(current, provider, change, request.version);
    const outcome =
      parent === provider.parent
        ? await renameProvider(database, namesParent(change) ? { ...row, seen: seenParent } : row, change.name)
        : await moveProvider(database, { ...row, name: change.name, ...movedBelow(parent, provider) });
    if (outcome === 'name taken') {
      throw conflict(`Conflicting resource provider ${change.name} already exists.`, errorCodes.duplicateName);
    }
    if (outcome !== 'done') return undefined;
    const written = providerAsWritten(await fleet.fresh(), { uuid, name: change.name, generation, parent });
    return { provider: written, previouslyUpdatedAtSeconds };
  });
}

/** The new parent and root of a provider, and the trees by which the move was judged. */
function movedBelow(parent: Provider | undefined, provider: Provider) {
  const root = parent?.root ?? provider;
  const judged = new Set([...treeOf(provider.root), ...treeOf(root)]);
  return {
    parentId: parent?.id ?? null,
    rootId: root.id,
    subtreeIds: allBelow(provider).map(({ id }) => id),
    judged: judgedNodes(judged),
  };
}

/**
 * The row of a provider as a statement must find it. With If-Match this includes the columns that the entity tag is
 * made of.
 */
const judgedRow = (
  { serverRun }: Fleet,
  { id, uuid, name, parent }: Provider,
  { ifMatch }: Pick<ApiRequest, 'ifMatch'>,
): JudgedRow => ({ id, uuid, serverRun, seen: ifMatch && { name, parentUuid: parent?.uuid ?? null } });

const namesParent = (
  change: ProviderChange,
): change is ProviderChange & { readonly parent_provider_uuid: string | null } =>
  change.parent_provider_uuid !== undefined;

/** The new parent of a provider. @throws ApiError 400 if the provider may not have this parent */
function judgeParent(fleet: Fleet, provider: Provider, change: ProviderChange, version: number): Provider | undefined {
  if (!namesParent(change)) return provider.parent;
  const refuse = (action: string, reason: string) =>
    badRequest(`Unable to save resource provider ${provider.uuid}: Object action ${action} failed because: ${reason}`);
  if (change.parent_provider_uuid === null) {
    if (provider.parent !== undefined && version < since.reparenting) {
      throw refuse('update', 'un-parenting a provider is not currently allowed.');
    }
    return undefined;
  }
  const parent = fleet.byUuid.get(change.parent_provider_uuid);
  if (parent === undefined) throw refuse('create', 'parent provider UUID does not exist.');
  if (provider.parent !== undefined && provider.parent !== parent && version < since.reparenting) {
    throw refuse('update', 're-parenting a provider is not currently allowed.');
  }
  if (allBelow(provider).includes(parent)) {
    throw refuse('update', 'creating loop in the provider tree is not allowed.');
  }
  return parent;
}

/**
 * The provider and all its descendants in the database. Where parents form a loop, each provider of the loop is below
 * every other.
 */
function allBelow(provider: Provider): readonly Provider[] {
  const { root } = provider;
  const subtree = subtreeOf(provider);
  return root.parent !== undefined && subtree.includes(root.parent) ? treeOf(root) : subtree;
}
