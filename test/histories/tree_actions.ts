import { type Action, errorOf, isLostRace } from './action.ts';
import { isMatch } from './claim_rules.ts';
import type { Reply } from './history.ts';
import { isMended } from './mended.ts';
import { type State, tags, usagesOf, withoutProvider, withProvider } from './state.ts';
import { hasChildren, isWithin } from './trees.ts';

/*
 * Providers that come, go, move, and get other names.
 */

const says =
  (status: number, part: string) =>
  (reply: Reply | undefined): boolean =>
    reply?.status === status && errorOf(reply).detail.includes(part);

const isNoParent = says(400, 'parent provider UUID does not exist');
const isTaken = says(409, 'Conflicting resource provider');

/** Whether another provider has a name. */
const isNameTaken = ({ providers }: State, uuid: string, name: string): boolean =>
  Object.entries(providers).some(([other, each]) => other !== uuid && each.name === name);

/** POST /resource_providers, below a parent or without one. */
export const make = (microversion: number, uuid: string, name: string, parent: string | null): Action => ({
  method: 'POST',
  path: '/resource_providers',
  microversion,
  body: { uuid, name, ...(parent === null ? {} : { parent_provider_uuid: parent }) },
  after: (state, reply) => {
    if (reply !== undefined && isLostRace(reply)) return [state];
    const isOrphan = parent !== null && state.providers[parent] === undefined;
    const isThere = state.providers[uuid] !== undefined || isNameTaken(state, uuid, name);
    if (isOrphan || isThere) return (isOrphan && isNoParent(reply)) || (isThere && isTaken(reply)) ? [state] : [];
    const made = { name, generation: 0, parent, inventories: {}, traits: [], aggregates: [] };
    const after = [{ ...state, providers: { ...state.providers, [uuid]: made } }];
    // The provider may be changed by others before the answer is made.
    if (reply === undefined || reply.status === (microversion >= 1020 ? 200 : 201)) return after;
    return microversion >= 1020 && reply.status === 404 && !isMended.shownWhenMade ? after : [];
  },
});

/** PUT /resource_providers/{uuid}: a name and, from 1.37 on, another parent. It has no generation to guard it, but a tag. */
export const change = (
  microversion: number,
  uuid: string,
  name: string,
  parent: string | null | undefined,
  ifMatch?: string,
): Action => ({
  method: 'PUT',
  path: `/resource_providers/${uuid}`,
  microversion,
  ifMatch,
  body: { name, ...(parent === undefined ? {} : { parent_provider_uuid: parent }) },
  after: (state, reply) => {
    const provider = state.providers[uuid];
    if (provider === undefined) return reply?.status === 404 ? [state] : [];
    if (!isMatch(ifMatch, tags.provider(uuid, provider))) return reply?.status === 412 ? [state] : [];
    const isOrphan = typeof parent === 'string' && state.providers[parent] === undefined;
    const isLoop = typeof parent === 'string' && isWithin(state, parent, uuid);
    if (isOrphan) return isNoParent(reply) ? [state] : [];
    if (isLoop) return says(400, 'creating loop')(reply) ? [state] : [];
    if (isNameTaken(state, uuid, name)) return isTaken(reply) ? [state] : [];
    // The answer shows what is there when it is sent, which may be a later write.
    if (reply !== undefined && reply.status !== 200) return [];
    const moved = parent === undefined ? [] : [withProvider(state, uuid, { name, parent })];
    const isOnlyNamed = parent === undefined || (!isMended.parentProven && parent !== provider.parent);
    return [...moved, ...(isOnlyNamed ? [withProvider(state, uuid, { name })] : [])];
  },
});

/** PUT /resource_providers/{uuid} with a name only. */
export const rename = (microversion: number, uuid: string, name: string, ifMatch?: string): Action =>
  change(microversion, uuid, name, undefined, ifMatch);

/** DELETE /resource_providers/{uuid}. */
export const remove = (microversion: number, uuid: string, ifMatch?: string): Action => ({
  method: 'DELETE',
  path: `/resource_providers/${uuid}`,
  microversion,
  ifMatch,
  after: (state, reply) => {
    const provider = state.providers[uuid];
    if (provider === undefined) return reply?.status === 404 ? [state] : [];
    if (!isMatch(ifMatch, tags.provider(uuid, provider))) return reply?.status === 412 ? [state] : [];
    const isParent = hasChildren(state, uuid);
    const isUsed = usagesOf(state.consumers)[uuid] !== undefined;
    if (isParent || isUsed) {
      const isRight = (isParent && says(409, 'child')(reply)) || (isUsed && says(409, 'has allocations')(reply));
      return isRight ? [state] : [];
    }
    return reply === undefined || reply.status === 204 ? [withoutProvider(state, uuid)] : [];
  },
});
