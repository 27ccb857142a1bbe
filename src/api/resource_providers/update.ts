import type { JudgedRow } from '../../../db/statements/providers/judged_provider.ts';
import { moveProvider, renameProvider } from '../../../db/statements/providers/update_provider.ts';
import { providerTagOf } from '../../fleet/model/entity_tags.ts';
import type { Fleet } from '../../fleet/model/fleet.ts';
import { type Provider, subtreeOf, treeOf } from '../../fleet/model/provider.ts';
import { badRequest, conflict, errorCodes } from '../../request/errors.ts';
import type { ApiRequest } from '../../rest/endpoint.ts';
import { since } from '../../rest/microversions.ts';
import { untilDone } from '../../writes/until_done.ts';
import { requireMatch } from '../answer_headers.ts';
import type { Dependencies } from '../dependencies.ts';
import { providerAsWritten, type ShownProvider } from './answers.ts';
import { findProvider, judgedNodes } from './provider.ts';

type Change = { readonly name: string; readonly parent_provider_uuid?: string | null | undefined };

/**
 * Gives a provider a name and, where the change has the key, a parent. A change of the parent is judged by the shape of
 * the trees. It is written only where the trees still have this shape, and judged again otherwise; the same holds for
 * If-Match.
 *
 * @returns the provider as it was written, and when it had been updated before
 * @throws ApiError 400 for a move that is not allowed, 404, 409 for a name that is taken, or 412.
 */
export async function saveProvider(
  { database, fleet }: Dependencies,
  uuid: string,
  change: Change,
  request: ApiRequest,
): Promise<{ provider: ShownProvider; previouslyUpdatedAtSeconds: number | undefined }> {
  return untilDone(async () => {
    const current = await fleet.fresh();
    const provider = findProvider(current, uuid);
    const previouslyUpdatedAtSeconds = provider.updatedAtSeconds;
    const { generation } = provider;
    requireMatch(request, `Resource provider ${uuid}`, () => providerTagOf(provider));
    const row = judgedRow(current, provider, request);
    // Where the request names the parent that the provider has, a move by another request must not come in between.
    const seenParent = { parentUuid: provider.parent?.uuid ?? null, ...row.seen };
    const parent = judgeParent(current, provider, change, request.version);
    const outcome =
      parent === provider.parent
        ? await renameProvider(database, namesParent(change) ? { ...row, seen: seenParent } : row, change.name)
        : await moveProvider(database, { ...row, name: change.name, ...placeBelow(parent, provider) });
    if (outcome === 'name taken') {
      throw conflict(`Conflicting resource provider ${change.name} already exists.`, errorCodes.duplicateName);
    }
    if (outcome !== 'done') return undefined;
    const written = providerAsWritten(await fleet.fresh(), { uuid, name: change.name, generation, parent });
    return { provider: written, previouslyUpdatedAtSeconds };
  });
}

/** The new place of a provider, and the trees by which the move was judged. */
function placeBelow(parent: Provider | undefined, provider: Provider) {
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
export const judgedRow = (
  { serverRun }: Fleet,
  { id, uuid, name, parent }: Provider,
  { ifMatch }: Pick<ApiRequest, 'ifMatch'>,
): JudgedRow => ({ id, uuid, serverRun, seen: ifMatch && { name, parentUuid: parent?.uuid ?? null } });

const namesParent = (change: Change): change is Change & { readonly parent_provider_uuid: string | null } =>
  change.parent_provider_uuid !== undefined;

/** The parent that the provider is to have. @throws ApiError 400 where it may not have it. */
function judgeParent(fleet: Fleet, provider: Provider, change: Change, version: number): Provider | undefined {
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
