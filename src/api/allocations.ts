import { isLostRace } from '../../db/sqlstate.ts';
import { deleteSeenAllocations } from '../../db/statements/delete_allocations.ts';
import type { ConsumerAllocationRow } from '../../db/statements/read_allocations.ts';
import { isStorable } from '../../db/storable.ts';
import type { Config } from '../config/config.ts';
import { badRequest, notFound } from '../errors.ts';
import { allocationsTag, type ConsumerContent, unknownType } from '../placement/entity_tag.ts';
import { isUuidLike, normalUuid } from '../placement/uuid.ts';
import { consumersBodies, putBodies } from './allocation_bodies.ts';
import { allocationsOf, consumerClaim, expectKnownOnly, writeClaim } from './claim_requests.ts';
import { type Answer, type ApiRequest, type Endpoint, noContent } from './endpoint.ts';
import { preconditionFailed, requireMatch, tagged, takesIfMatch } from './entity_tags.ts';
import { newest } from './last_modified.ts';
import type { Parts } from './parts.ts';
import { bySince } from './since.ts';

// Routes

const one = '/allocations/:consumer_uuid';
const rule = (verb: string) => `placement:allocations:${verb}`;

export const allocationEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/allocations',
    since: 13,
    policy: rule('manage'),
    wantsJson: true,
    ...takesIfMatch,
    handle: post,
  },
  { method: 'GET', path: one, since: 0, policy: rule('list'), answersJson: true, handle: show },
  { method: 'PUT', path: one, since: 0, policy: rule('update'), wantsJson: true, ...takesIfMatch, handle: put },
  { method: 'DELETE', path: one, since: 0, policy: rule('delete'), ...takesIfMatch, handle: remove },
];

// Request schemas

const postBodies = consumersBodies(1);

// Handlers

async function show(request: ApiRequest, { allocationReads, config }: Parts): Promise<Answer> {
  const uuid = request.param('consumer_uuid');
  const rows = await allocationReads.ofConsumer(uuid);
  const byProvider = new Map<string, { resources: Record<string, number>; generation: number }>();
  for (const { provider_uuid, provider_generation, class_name, used } of rows) {
    const entry = byProvider.get(provider_uuid) ?? { resources: {}, generation: provider_generation };
    entry.resources[class_name] = used;
    byProvider.set(provider_uuid, entry);
  }
  const allocations = Object.fromEntries(byProvider);
  const lastModified = newest(rows.map(({ modified }) => modified ?? undefined));
  const content = contentOf(rows, config);
  // Who has nothing is not there, and has no tag either.
  if (content === undefined) return { status: 200, json: { allocations }, lastModified };
  const of = (since: number) => request.version >= since;
  const json = {
    allocations,
    ...(of(12) ? { project_id: content.projectId, user_id: content.userId } : {}),
    ...(of(28) ? { consumer_generation: rows[0]?.consumer_generation ?? null } : {}),
    ...(of(38) ? { consumer_type: content.consumerType ?? unknownType } : {}),
  };
  return { status: 200, ...tagged(request, json, () => allocationsTag(content)), lastModified };
}

async function put(request: ApiRequest, parts: Parts): Promise<Answer> {
  const uuid = request.param('consumer_uuid');
  if (!isUuidLike(uuid)) throw badRequest(`Malformed consumer_uuid: ${uuid}`);
  const body = await request.json(bySince(putBodies, request.version));
  const consumer = consumerClaim(normalUuid(uuid), body, request, parts.config);
  await writeClaim(
    parts,
    { consumers: [consumer], inventories: [] },
    {
      notFound: `Unable to allocate inventory for consumer ${consumer.uuid}:`,
    },
  );
  return noContent;
}

async function post(request: ApiRequest, parts: Parts): Promise<Answer> {
  const body = await request.json(bySince(postBodies, request.version));
  const consumers = expectKnownOnly(
    Object.entries(body).map(([uuid, consumer]) => consumerClaim(uuid, consumer, request, parts.config)),
  );
  if (request.ifMatch !== undefined && consumers.every(({ expected }) => expected === undefined)) {
    throw preconditionFailed('What consumers have of which all are new');
  }
  await writeClaim(parts, { consumers, inventories: [] }, { notFound: 'Unable to allocate inventory' });
  return noContent;
}

async function remove(request: ApiRequest, parts: Parts): Promise<Answer> {
  const uuid = request.param('consumer_uuid');
  for (;;) {
    try {
      if (request.ifMatch === undefined) {
        await removeAny(uuid, parts);
        return noContent;
      }
      if (await removeSeen(uuid, request, parts)) return noContent;
    } catch (error) {
      // Who lost a deadlock has deleted nothing.
      if (!isLostRace(error)) throw error;
    }
  }
}

const nothingToDelete = (uuid: string) => notFound(`No allocations for consumer '${uuid}'`);

async function removeAny(uuid: string, { deletions }: Parts): Promise<void> {
  if (!isStorable(uuid) || (await deletions.delete(uuid)) === 0) throw nothingToDelete(uuid);
}

/** @returns false where they were changed since they were read here, so that the client's tag must be looked at again. */
async function removeSeen(
  uuid: string,
  request: ApiRequest,
  { database, allocationReads, config }: Parts,
): Promise<boolean> {
  const rows = await allocationReads.ofConsumer(uuid);
  const content = contentOf(rows, config);
  if (content === undefined) throw nothingToDelete(uuid);
  requireMatch(request, allocationsOf(uuid), () => allocationsTag(content));
  const seen = { generation: rows[0]?.consumer_generation ?? null, allocations: rows };
  return (await deleteSeenAllocations(database, uuid, seen)) > 0;
}

/** What a consumer has, and whose it is; undefined where it has nothing. */
function contentOf(rows: readonly ConsumerAllocationRow[], { placement }: Config): ConsumerContent | undefined {
  const [first] = rows;
  if (first === undefined) return undefined;
  const allocations = new Map<string, Map<string, number>>();
  for (const { provider_uuid, class_name, used } of rows) {
    const amounts = allocations.get(provider_uuid) ?? new Map<string, number>();
    allocations.set(provider_uuid, amounts.set(class_name, used));
  }
  return {
    allocations,
    // Old allocations without a consumer record belong to those that the migration will give them to.
    projectId: first.project_id ?? placement.incompleteConsumerProjectId,
    userId: first.user_id ?? placement.incompleteConsumerUserId,
    consumerType: first.consumer_type,
  };
}
