import type { Answer, ApiRequest, Endpoint } from '../rest/endpoint.ts';
import { noSuchProvider, notFound } from '../rest/errors.ts';
import { since } from '../rest/microversions.ts';
import { changesToken } from './changes_token.ts';
import { generationOfRow, goesOn } from './consumer_generations.ts';
import type { Dependencies } from './dependencies.ts';
import { newest } from './last_modified.ts';

// Routes

export const providerAllocationEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'GET',
    path: '/resource_providers/:uuid/allocations',
    since: since.firstVersion,
    policy: 'placement:resource_providers:allocations:list',
    answersJson: true,
    handle: show,
  },
];

// Handlers

async function show(request: ApiRequest, { allocationReads, fleet }: Dependencies): Promise<Answer> {
  const uuid = request.param('uuid');
  // The token is of a moment before the allocations are read.
  if (request.version >= since.following) await fleet.fresh();
  const token = changesToken(request, fleet);
  const rows = await allocationReads.onProvider(uuid, { withFormer: goesOn(request.version) });
  const [first] = rows;
  if (first === undefined) throw notFound(`Resource provider '${uuid}' not found: ${noSuchProvider(uuid)}`);
  const allocations = new Map<string, { resources: Record<string, number>; consumer_generation?: number | null }>();
  for (const row of rows) {
    const { consumer_uuid, class_name, used } = row;
    if (consumer_uuid === null || class_name === null || used === null) continue;
    const entry = allocations.get(consumer_uuid) ?? {
      resources: {},
      ...(request.version >= since.consumerGenerations ? { consumer_generation: generationOfRow(request, row) } : {}),
    };
    entry.resources[class_name] = used;
    allocations.set(consumer_uuid, entry);
  }
  return {
    status: 200,
    json: { allocations: Object.fromEntries(allocations), resource_provider_generation: first.provider_generation },
    lastModified: newest(rows.map(({ modified }) => modified ?? undefined)),
    ...token,
  };
}
