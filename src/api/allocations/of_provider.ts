import type { ProviderAllocationRow } from '../../../db/statements/claims/read_allocations.ts';
import { goesOn } from '../../placement/consumer.ts';
import { since } from '../../placement/microversions.ts';
import { ApiError, noSuchProvider } from '../../request/errors.ts';
import { atOnce, type Pieces, type Turns } from '../../request/turns.ts';
import type { Answer, ApiRequest, Endpoint } from '../../rest/endpoint.ts';
import type { ChunkMaker } from '../../rest/json_body.ts';
import {
  inOrderOfMembers,
  type ListForm,
  listText,
  madeInTurns,
  shortListItems,
  withoutFleet,
  writeList,
} from '../../rest/made_in_turns.ts';
import { changesToken, newest } from '../answers.ts';
import { generationOfRow } from '../consumers/consumer.ts';
import type { Dependencies } from '../dependencies.ts';
import { absent } from '../resource_providers/provider.ts';

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
  // The token is of a snapshot from before the allocations are read.
  if (request.version >= since.following) await fleet.fresh();
  const token = changesToken(request, fleet);
  const rows = await allocationReads.onProvider(uuid, { inFull: goesOn(request.version) });
  const [first] = rows;
  if (first === undefined) {
    const detail = `Resource provider '${uuid}' not found: ${noSuchProvider(uuid)}`;
    throw new ApiError(404, detail, { sentence: absent(uuid) });
  }
  return {
    status: 200,
    ...(await bodyOf(request, rows, first)),
    lastModified: newest(rows.map(({ modified }) => modified ?? undefined)),
    ...token,
  };
}

type Allocation = { resources: Record<string, number>; consumer_generation?: number | null; name?: string | null };

async function bodyOf(
  request: ApiRequest,
  rows: readonly ProviderAllocationRow[],
  { provider_generation: generation }: ProviderAllocationRow,
): ReturnType<typeof madeInTurns> {
  const form: ListForm<readonly [uuid: string, Allocation]> = {
    begin: '{"allocations":{',
    textOf: ([uuid, allocation]) => `${JSON.stringify(uuid)}:${JSON.stringify(allocation)}`,
    separator: ',',
    end: `},"resource_provider_generation":${generation}}`,
  };
  if (rows.length <= shortListItems)
    return { body: listText(inOrderOfMembers(atOnce(byConsumer(request, rows))), form) };
  return madeInTurns(request, withoutFleet, (turns) => write(request, rows, form, turns));
}

function* write(
  request: ApiRequest,
  rows: readonly ProviderAllocationRow[],
  form: ListForm<readonly [uuid: string, Allocation]>,
  turns: Turns,
): ChunkMaker {
  const allocations = yield* byConsumer(request, rows, turns);
  yield* writeList(turns, inOrderOfMembers(allocations), form);
}

/** The allocations of a provider, by the UUID of the consumer. */
function* byConsumer(
  request: ApiRequest,
  rows: readonly ProviderAllocationRow[],
  turns?: Turns,
): Pieces<ReadonlyMap<string, Allocation>> {
  const allocations = new Map<string, Allocation>();
  for (const row of rows) {
    if (turns?.isOver(roundsPerRow)) yield undefined;
    const { consumer_uuid, class_name, used } = row;
    if (consumer_uuid === null || class_name === null || used === null) continue;
    const entry = allocations.get(consumer_uuid) ?? {
      resources: {},
      ...(request.version >= since.consumerGenerations ? { consumer_generation: generationOfRow(request, row) } : {}),
      ...(request.version >= since.names ? { name: row.consumer_name } : {}),
    };
    entry.resources[class_name] = used;
    allocations.set(consumer_uuid, entry);
  }
  return allocations;
}

/** How long a row takes, in rounds of `Turns.isOver`: a shared pool may have a hundred thousand rows. */
const roundsPerRow = 5;
