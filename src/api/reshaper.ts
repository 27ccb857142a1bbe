import type * as v from 'valibot';
import { keyed, object } from '../schema/json_schema.ts';
import { consumersBodies, uuidKeyPattern } from './allocation_bodies.ts';
import { consumerClaim, expectKnownOnly, writeClaim } from './claim_requests.ts';
import { type Answer, type ApiRequest, type Endpoint, noContent } from './endpoint.ts';
import { takesIfMatch } from './entity_tags.ts';
import { inventoryFields, providerInventoriesBodies } from './inventory_body.ts';
import type { Parts } from './parts.ts';
import { bySince } from './since.ts';

// Routes

export const reshaperEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/reshaper',
    since: 30,
    policy: 'placement:reshaper:reshape',
    wantsJson: true,
    ...takesIfMatch,
    handle: reshape,
  },
];

// Request schemas

const byProvider = <Inventories extends v.GenericSchema>(inventories: Inventories) =>
  keyed(uuidKeyPattern, inventories, { minProperties: 1 });
const [echoingInventories, plainInventories] = providerInventoriesBodies;
const inventories = byProvider(plainInventories.schema);
const withAllocations = <Allocations extends v.GenericSchema>(allocations: Allocations) =>
  object({ inventories, allocations });

const [echoing, typed, mapped, guarded] = consumersBodies(0);
const bodies = [
  { since: 40, schema: object({ inventories: byProvider(echoingInventories.schema), allocations: echoing.schema }) },
  { since: 38, schema: withAllocations(typed.schema) },
  { since: 34, schema: withAllocations(mapped.schema) },
  { since: 30, schema: withAllocations(guarded.schema) },
] as const;

// Handlers

/** Moves inventories between providers together with the allocations on them, in one go. */
async function reshape(request: ApiRequest, parts: Parts): Promise<Answer> {
  const body = await request.json(bySince(bodies, request.version));
  await writeClaim(
    parts,
    {
      consumers: expectKnownOnly(
        Object.entries(body.allocations).map(([uuid, consumer]) =>
          consumerClaim(uuid, consumer, request, parts.config),
        ),
      ),
      inventories: Object.entries(body.inventories).map(([providerUuid, of]) => ({
        providerUuid,
        knownGeneration: of.resource_provider_generation,
        ifMatch: request.ifMatch,
        inventories: new Map(Object.entries(of.inventories).map(([name, record]) => [name, inventoryFields(record)])),
      })),
    },
    { notFound: 'malformed reshaper data:', concurrentUpdate: 'update conflict:' },
  );
  return noContent;
}
