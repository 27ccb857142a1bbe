import { isLostRace } from '../../db/sqlstate.ts';
import { deleteAllocations } from '../../db/statements/delete_allocations.ts';
import { readAllocations } from '../../db/statements/read_allocations.ts';
import { isStorable } from '../../db/storable.ts';
import { badRequest, notFound } from '../errors.ts';
import { isUuidLike, normalUuid } from '../placement/uuid.ts';
import { consumersBodies, putBodies } from './allocation_bodies.ts';
import { consumerClaim, writeClaim } from './claim_requests.ts';
import { type Answer, type ApiRequest, type Endpoint, noContent } from './endpoint.ts';
import type { Parts } from './parts.ts';
import { newest } from './provider.ts';
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
    handle: post,
  },
  { method: 'GET', path: one, since: 0, policy: rule('list'), answersJson: true, handle: show },
  { method: 'PUT', path: one, since: 0, policy: rule('update'), wantsJson: true, handle: put },
  { method: 'DELETE', path: one, since: 0, policy: rule('delete'), handle: remove },
];

// Request schemas

const postBodies = consumersBodies(1);

// Handlers

async function show(request: ApiRequest, { database, config }: Parts): Promise<Answer> {
  const uuid = request.param('consumer_uuid');
  const rows = isStorable(uuid) ? await readAllocations(database, uuid) : [];
  const allocations: Record<string, { resources: Record<string, number>; generation: number }> = {};
  for (const { provider_uuid, provider_generation, class_name, used } of rows) {
    allocations[provider_uuid] ??= { resources: {}, generation: provider_generation };
    const entry = allocations[provider_uuid];
    entry.resources[class_name] = used;
  }
  const [first] = rows;
  const { incompleteConsumerProjectId, incompleteConsumerUserId } = config.placement;
  const of = (since: number) => first !== undefined && request.version >= since;
  return {
    status: 200,
    json: {
      allocations,
      ...(of(12)
        ? {
            // Old allocations without a consumer record belong to those that the migration will give them to.
            project_id: first?.project_id ?? incompleteConsumerProjectId,
            user_id: first?.user_id ?? incompleteConsumerUserId,
          }
        : {}),
      ...(of(28) ? { consumer_generation: first?.consumer_generation ?? null } : {}),
      ...(of(38) ? { consumer_type: first?.consumer_type ?? 'unknown' } : {}),
    },
    lastModified: newest(rows.map(({ modified }) => modified ?? undefined)),
  };
}

async function put(request: ApiRequest, parts: Parts): Promise<Answer> {
  const uuid = request.param('consumer_uuid');
  if (!isUuidLike(uuid)) throw badRequest(`Malformed consumer_uuid: ${uuid}`);
  const body = await request.json(bySince(putBodies, request.version));
  const consumer = consumerClaim(normalUuid(uuid), body, request.version, parts.config);
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
  const consumers = Object.entries(body).map(([uuid, consumer]) =>
    consumerClaim(uuid, consumer, request.version, parts.config),
  );
  await writeClaim(parts, { consumers, inventories: [] }, { notFound: 'Unable to allocate inventory' });
  return noContent;
}

async function remove(request: ApiRequest, { database }: Parts): Promise<Answer> {
  const uuid = request.param('consumer_uuid');
  for (;;) {
    try {
      if (isStorable(uuid) && (await deleteAllocations(database, uuid)) > 0) return noContent;
      throw notFound(`No allocations for consumer '${uuid}'`);
    } catch (error) {
      if (!isLostRace(error)) throw error;
    }
  }
}
