import type * as v from 'valibot';
import { since } from '../../placement/microversions.ts';
import { bySince } from '../../placement/versions.ts';
import { type Answer, type ApiRequest, type Endpoint, noContent } from '../../rest/endpoint.ts';
import { keyed, object } from '../../rest/json_schema.ts';
import { takesIfMatch } from '../answers.ts';
import type { Dependencies } from '../dependencies.ts';
import { inventoryFields, providerInventoriesBodies } from '../resource_providers/inventory_bodies.ts';
import { consumersBodies, dryRun, uuidKeyPattern } from './bodies.ts';
import { answerTo, asksForDryRun, consumerClaim, expectKnownOnly, writeClaim } from './claim_requests.ts';

// Routes

export const reshaperEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'POST',
    path: '/reshaper',
    since: since.reshaper,
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

const [named, naming, timed, echoing, typed, mapped, guarded] = consumersBodies(0);
const echoed = {
  inventories: byProvider(echoingInventories.schema),
  allocations: echoing.schema,
};
const bodies = [
  { since: since.names, schema: object({ ...echoed, allocations: named.schema, ...dryRun }) },
  { since: since.teams, schema: object({ ...echoed, allocations: naming.schema, ...dryRun }) },
  { since: since.terms, schema: object({ ...echoed, allocations: timed.schema, ...dryRun }) },
  { since: since.placing, schema: object({ ...echoed, ...dryRun }) },
  { since: since.entityTags, schema: object(echoed) },
  { since: since.consumerTypes, schema: withAllocations(typed.schema) },
  { since: since.mappings, schema: withAllocations(mapped.schema) },
  { since: since.reshaper, schema: withAllocations(guarded.schema) },
] as const;

// Handlers

/**
 * Moves inventories between providers together with the allocations on them, in one transaction. Consumers keep their
 * terms, because the reshaper only moves what they have to other providers.
 */
async function reshape(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const body = await request.json(bySince(bodies, request.version));
  const isDryRun = asksForDryRun(body);
  return answerTo(isDryRun, async () => {
    await writeClaim(
      request,
      dependencies,
      {
        isReshape: true,
        consumers: expectKnownOnly(
          Object.entries(body.allocations).map(([uuid, consumer]) => ({
            ...consumerClaim(uuid, consumer, request, dependencies.config),
            term: 'carried over' as const,
          })),
        ),
        inventories: Object.entries(body.inventories).map(([providerUuid, of]) => ({
          providerUuid,
          knownGeneration: of.resource_provider_generation,
          ifMatch: request.ifMatch,
          inventories: new Map(Object.entries(of.inventories).map(([name, record]) => [name, inventoryFields(record)])),
        })),
      },
      { isDryRun, notFound: 'malformed reshaper data:', concurrentUpdate: 'update conflict:' },
    );
    return noContent;
  });
}
