import { hasSqlstate, isLostRace, sqlstate } from '../../db/sqlstate.ts';
import { moveProvider } from '../../db/statements/move_provider.ts';
import { renameProvider } from '../../db/statements/rename_provider.ts';
import type { SeenProvider } from '../../db/statements/seen_provider.ts';
import { badRequest, conflict, errorCodes } from '../errors.ts';
import { providerTagOf } from '../fleet/entity_tags.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { type Provider, subtreeOf } from '../fleet/provider.ts';
import type { ApiRequest } from './endpoint.ts';
import { requireMatch } from './entity_tags.ts';
import type { Parts } from './parts.ts';
import { findProvider } from './provider.ts';

/** Microversion 1.37 lets a provider change or lose its parent; before it could only get one. */
const reparentingSince = 37;

type Change = { readonly name: string; readonly parent_provider_uuid?: string | null | undefined };

/**
 * Gives a provider a name and, where the change has the key, a parent. A change of the parent is judged by the shape of the
 * trees, written only where they still have it, and judged again otherwise; the same goes for what If-Match asks for.
 *
 * @returns the provider as it is now, and when it had been updated before.
 * @throws ApiError 400 for a move that is not allowed, 404, 409 for a name that is taken, or 412.
 */
export async function saveProvider(
  { database, fleet }: Parts,
  uuid: string,
  change: Change,
  request: ApiRequest,
): Promise<{ provider: Provider; previouslyUpdatedAtSeconds: number | undefined }> {
  for (;;) {
    const current = await fleet.fresh();
    const provider = findProvider(current, uuid);
    const previouslyUpdatedAtSeconds = provider.updatedAtSeconds;
    requireMatch(request, `Resource provider ${uuid}`, () => providerTagOf(provider));
    const seen = request.ifMatch && seenOf(provider);
    const parent = judgeParent(current, provider, change, request.version);
    try {
      if (parent === provider.parent) {
        if (!(await renameProvider(database, provider.id, change.name, seen))) continue;
      } else {
        const root = parent?.root ?? provider;
        const judged = new Set([...provider.root.tree, ...root.tree]);
        const moved = await moveProvider(database, {
          id: provider.id,
          name: change.name,
          parentId: parent?.id ?? null,
          rootId: root.id,
          subtreeIds: allBelow(provider).map(({ id }) => id),
          judged: [...judged].map((node) => ({ id: node.id, parentId: node.parent?.id ?? null })),
          seen,
        });
        if (!moved) continue;
      }
    } catch (error) {
      if (isLostRace(error)) continue;
      if (!hasSqlstate(error, sqlstate.uniqueViolation)) throw error;
      throw conflict(`Conflicting resource provider ${change.name} already exists.`, errorCodes.duplicateName);
    }
    return { provider: findProvider(await fleet.fresh(), uuid), previouslyUpdatedAtSeconds };
  }
}

/** What the entity tag of a provider is of, for a statement that must find it so. */
export const seenOf = ({ name, parent }: Provider): SeenProvider => ({ name, parentId: parent?.id ?? null });

/** The parent that the provider is to have. @throws ApiError 400 where it may not have it. */
function judgeParent(fleet: Fleet, provider: Provider, change: Change, version: number): Provider | undefined {
  if (!('parent_provider_uuid' in change) || change.parent_provider_uuid === undefined) return provider.parent;
  const refuse = (action: string, reason: string) =>
    badRequest(`Unable to save resource provider ${provider.uuid}: Object action ${action} failed because: ${reason}`);
  if (change.parent_provider_uuid === null) {
    if (provider.parent !== undefined && version < reparentingSince) {
      throw refuse('update', 'un-parenting a provider is not currently allowed.');
    }
    return undefined;
  }
  const parent = fleet.byUuid.get(change.parent_provider_uuid);
  if (parent === undefined) throw refuse('create', 'parent provider UUID does not exist.');
  if (provider.parent !== undefined && provider.parent !== parent && version < reparentingSince) {
    throw refuse('update', 're-parenting a provider is not currently allowed.');
  }
  if (allBelow(provider).includes(parent)) {
    throw refuse('update', 'creating loop in the provider tree is not allowed.');
  }
  return parent;
}

/** The provider and all its descendants in the database: where parents form a loop, each of them is below every other. */
function allBelow(provider: Provider): readonly Provider[] {
  const { root } = provider;
  const subtree = subtreeOf(provider);
  return root.parent !== undefined && subtree.includes(root.parent) ? root.tree : subtree;
}
