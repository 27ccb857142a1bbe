import assert from 'node:assert/strict';
import { readHistoryState } from '../../db/statements/usage_records.ts';
import type { PlacementService } from '../../src/start/service.ts';
import type { Json } from '../openapi/document.ts';
import { anyEngine } from '../support/engines.ts';
import { requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';

/** A request and its answer, as examples of an operation. Where there is no body it is undefined. */
export type Example = {
  readonly request: Json | undefined;
  readonly status: number;
  readonly response: Json | undefined;
};

const uuid = (last: string): string => `00000000-0000-4000-8000-${last.padStart(12, '0')}`;
const [host, node, spare, aggregate] = [uuid('a'), uuid('b'), uuid('c'), uuid('aa')];
const [job, other, moved, waiter] = [uuid('1'), uuid('2'), uuid('3'), uuid('4')];
const owner = { project_id: 'ci', user_id: 'ada', consumer_generation: null, consumer_type: 'JOB' };
const gpus = (total: number) => ({ inventories: { PGPU: { total } } });
const generation = (value: number) => ({ resource_provider_generation: value });

/** One request for each operation, in an order in which each finds what it needs. */
const requests: readonly (readonly [operation: string, method: string, path: string, body?: object])[] = [
  ['createResourceProvider', 'POST', '/resource_providers', { name: 'gpu-1', uuid: host }],
  ['', 'POST', '/resource_providers', { name: 'gpu-1-link-0', uuid: node, parent_provider_uuid: host }],
  ['', 'POST', '/resource_providers', { name: 'gpu-2', uuid: spare }],
  ['updateResourceProvider', 'PUT', `/resource_providers/${spare}`, { name: 'gpu-spare', parent_provider_uuid: null }],
  ['listResourceProviders', 'GET', `/resource_providers?in_tree=${host}`],
  ['showResourceProvider', 'GET', `/resource_providers/${node}`],
  ['createResourceClass', 'POST', '/resource_classes', { name: 'CUSTOM_LICENCE' }],
  ['putResourceClass', 'PUT', '/resource_classes/CUSTOM_SLOT'],
  ['showResourceClass', 'GET', '/resource_classes/CUSTOM_SLOT'],
  ['putTrait', 'PUT', '/traits/CUSTOM_GPU_80GB'],
  ['', 'PUT', '/traits/CUSTOM_OLD'],
  ['showTrait', 'GET', '/traits/CUSTOM_GPU_80GB'],
  ['listTraits', 'GET', '/traits?name=startswith:CUSTOM_'],
  ['replaceInventories', 'PUT', `/resource_providers/${host}/inventories`, { ...generation(0), ...gpus(4) }],
  ['', 'PUT', `/resource_providers/${spare}/inventories`, { ...generation(0), ...gpus(2) }],
  [
    'createInventory',
    'POST',
    `/resource_providers/${host}/inventories`,
    { resource_class: 'VCPU', total: 64, ...generation(1) },
  ],
  [
    'updateInventory',
    'PUT',
    `/resource_providers/${host}/inventories/VCPU`,
    { total: 64, reserved: 4, ...generation(2) },
  ],
  ['listInventories', 'GET', `/resource_providers/${host}/inventories`],
  ['showInventory', 'GET', `/resource_providers/${host}/inventories/PGPU`],
  [
    'replaceProviderTraits',
    'PUT',
    `/resource_providers/${host}/traits`,
    { traits: ['CUSTOM_GPU_80GB'], ...generation(3) },
  ],
  ['listProviderTraits', 'GET', `/resource_providers/${host}/traits`],
  [
    'replaceProviderAggregates',
    'PUT',
    `/resource_providers/${host}/aggregates`,
    { aggregates: [aggregate], ...generation(4) },
  ],
  ['listProviderAggregates', 'GET', `/resource_providers/${host}/aggregates`],
  ['listAllocationCandidates', 'GET', '/allocation_candidates?resources=PGPU:4&limit=1'],
  ['explainAllocationCandidates', 'GET', '/allocation_candidates/explanation?resources=PGPU:8&nearest=1'],
  ['countAllocationCandidates', 'GET', '/allocation_candidates/count?resources=PGPU:1&top=1'],
  [
    'replaceAllocations',
    'PUT',
    `/allocations/${job}`,
    {
      candidates: ['resources=PGPU:2&required=CUSTOM_GPU_80GB&order=free:PGPU'],
      ...owner,
      expires_in: 3600,
      name: 'train-7',
    },
  ],
  ['showAllocations', 'GET', `/allocations/${job}`],
  [
    'manageAllocations',
    'POST',
    '/allocations',
    { [other]: { candidates: [`resources=PGPU:1&apart_from=${job}`], ...owner } },
  ],
  ['listProviderAllocations', 'GET', `/resource_providers/${host}/allocations`],
  ['showProviderUsages', 'GET', `/resource_providers/${host}/usages`],
  ['showProjectUsages', 'GET', '/usages?project_id=ci'],
  ['listConsumers', 'GET', '/consumers?project_id=ci&limit=1'],
  ['listHoldings', 'GET', '/holdings?project_id=ci&limit=1'],
  ['listUsageRecords', 'GET', '/usage_records?project_id=ci&limit=1'],
  ['sumUsageRecords', 'GET', '/usage_totals?by=project_id,resource_class,day&project_id=ci'],
  ['setConsumerTerm', 'PUT', `/consumers/${job}/term`, { expires_in: 3600, consumer_generation: 1 }],
  ['updateConsumer', 'PUT', `/consumers/${job}`, { ...owner, project_id: 'web', consumer_generation: 1 }],
  ['showConsumer', 'GET', `/consumers/${job}`],
  ['listProviderSummaries', 'GET', `/provider_summaries?uuid=${host}`],
  ['listResourceClasses', 'GET', '/resource_classes'],
  ['', 'PUT', `/allocations/${moved}`, { allocations: { [host]: { resources: { PGPU: 1 } } }, ...owner }],
  [
    'reshape',
    'POST',
    '/reshaper',
    { inventories: { [node]: { ...generation(0), inventories: { PGPU: { total: 4 } } } }, allocations: {} },
  ],
  ['createToken', 'POST', '/tokens', { user_id: 'ada', project_id: 'ci', roles: ['member'], expires_in: 7776000 }],
  ['listTokens', 'GET', '/tokens?project_id=ci'],
  [
    'replaceLimits',
    'PUT',
    '/limits/ci',
    { resources: { PGPU: 20 }, consumers: { all: 50, JOB: 10 }, generation: null },
  ],
  ['replaceDefaultLimits', 'PUT', '/default_limits', { resources: { PGPU: 4 }, generation: null }],
  ['showLimits', 'GET', '/limits/ci'],
  ['showDefaultLimits', 'GET', '/default_limits'],
  ['listLimits', 'GET', '/limits'],
  ['deleteAllocations', 'DELETE', `/allocations/${moved}`],
  ['deleteInventory', 'DELETE', `/resource_providers/${host}/inventories/VCPU`],
  ['deleteProviderTraits', 'DELETE', `/resource_providers/${host}/traits`],
  ['deleteTrait', 'DELETE', '/traits/CUSTOM_OLD'],
  ['deleteResourceClass', 'DELETE', '/resource_classes/CUSTOM_SLOT'],
  ['', 'DELETE', `/allocations/${other}`],
  ['deleteInventories', 'DELETE', `/resource_providers/${spare}/inventories`],
  ['deleteResourceProvider', 'DELETE', `/resource_providers/${spare}`],
];

/** Sends one request for each operation to a new service. @returns the examples, by operationId */
export async function tellStory(version: string): Promise<ReadonlyMap<string, Example>> {
  const examples = new Map<string, Example>();
  await withTestService(anyEngine, { history: { enabled: true } }, async (service) => {
    const send = requestsTo(service, version);
    await until('the history is on', async () => (await readHistoryState(service.database)) === 'on');
    const first = await send('GET', '/changes');
    const { next } = JSON.parse(first.text) as { readonly next: string }; // by openapi.yaml
    for (const [operation, method, path, body] of requests) {
      const answer = await send(method, path, body);
      assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`);
      if (operation !== '') {
        const response: Json | undefined = answer.text === '' ? undefined : steady(JSON.parse(answer.text));
        const request: Json | undefined = body === undefined ? undefined : JSON.parse(JSON.stringify(body));
        examples.set(operation, { request, status: answer.status, response });
      }
    }
    await tellOfWaiting(service, version, examples);
    const changes = await send('GET', `/changes?since=${next}&resource_class=PGPU`);
    examples.set('listChanges', {
      request: undefined,
      status: changes.status,
      response: steady(JSON.parse(changes.text)),
    });
  });
  return examples;
}

/** A claim waits, is listed, and its wait is ended. */
async function tellOfWaiting(
  service: PlacementService,
  version: string,
  examples: Map<string, Example>,
): Promise<void> {
  const send = requestsTo(service, version);
  const body = { ...owner, candidates: 'resources=PGPU:8', line: 'gpu', name: 'train-8' };
  const waiting = send('PUT', `/allocations/${waiter}`, body, version, { prefer: 'wait=60' });
  let text = '';
  await until('the claim is listed', async () => {
    ({ text } = await send('GET', '/waiting?project_id=ci'));
    return text.includes(waiter);
  });
  examples.set('listWaiting', { request: undefined, status: 200, response: steady(JSON.parse(text)) });
  const { status } = await send('DELETE', `/waiting/${waiter}`);
  examples.set('deleteWaiting', { request: undefined, status, response: undefined });
  assert.equal((await waiting).status, 409);
}

/** It has the form of a token, and not the checksum. */
const token = `plc_${'0'.repeat(49)}`;
const time = '2026-11-26T12:00:00.000Z';

/** What differs from run to run gets a fixed value, and long lists are cut. */
function steady(value: Json): Json {
  if (Array.isArray(value)) return value.slice(0, 3).map(steady);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => {
      if (typeof each === 'string' && /(_at|since|until)$|^from$/.test(key) && each.length === time.length)
        return [key, time];
      if (key === 'day') return [key, time.slice(0, 10)];
      if (key === 'amount_hours') return [key, 48.5];
      if (key === 'id' && typeof each === 'string' && each.length === 36) return [key, uuid('f')];
      if (key === 'token') return [key, token];
      if (key === 'prefix') return [key, token.slice(0, 10)];
      if (key === 'next') return [key, 'AZUMSn3ajoULiogG7Ej8Qw'];
      return [key, steady(each)];
    }),
  );
}
