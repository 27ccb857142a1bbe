import type { ProviderAllocationRow } from '../../db/statements/claims/read_provider_allocations.ts';
import type { Answer, ApiRequest, Endpoint } from '../rest/endpoint.ts';
import { noSuchProvider, notFound } from '../rest/errors.ts';
import type { ChunkMaker } from '../rest/json_body.ts';
import { inOrderOfMembers, madeInTurns, notOfTheFleet, writeList } from '../rest/made_in_turns.ts';
import { since } from '../rest/microversions.ts';
import type { Turns } from '../rest/pieces.ts';
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
  return {
    status: 200,
    ...(await madeInTurns(request, notOfTheFleet, (turns) => write(request, rows, first, turns))),
    lastModified: newest(rows.map(({ modified }) => modified ?? undefined)),
    ...token,
  };
}

function* write(
  request: ApiRequest,
  rows: readonly ProviderAllocationRow[],
  { provider_generation: generation }: ProviderAllocationRow,
  turns: Turns,
): ChunkMaker {
  const allocations = new Map<string, { resources: Record<string, number>; consumer_generation?: number | null }>();
  for (const row of rows) {
    if (turns.isOver(roundsPerRow)) yield;
    const { consumer_uuid, class_name, used } = row;
    if (consumer_uuid === null || class_name === null || used === null) continue;
    const entry = allocations.get(consumer_uuid) ?? {
      resources: {},
      ...(request.version >= since.consumerGenerations ? { consumer_generation: generationOfRow(request, row) } : {}),
    };
    entry.resources[class_name] = used;
    allocations.set(consumer_uuid, entry);
  }
  yield* writeList(turns, inOrderOfMembers(allocations), {
    begin: '{"allocations":{',
    textOf: ([uuid, entry]) => `${JSON.stringify(uuid)}:${JSON.stringify(entry)}`,
    separator: ',',
    end: `},"resource_provider_generation":${generation}}`,
  });
}

/** How long a row takes, in rounds of `Turns.isOver`: a shared pool may have a hundred thousand. */
const roundsPerRow = 5;
