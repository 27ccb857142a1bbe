import { setTimeout as sleep } from 'node:timers/promises';
import { placementService } from '../../src/placement/microversions.ts';
import { versionOfText, versionTexts } from '../../src/placement/versions.ts';
import type { Connection } from '../histories/connection.ts';
import { type Random, randomUuid } from '../races/random.ts';

const versions = versionTexts(placementService).map(versionOfText);

/** Reads and writes of endpoints that no history has, at all versions, until it is stopped. */
export async function wander(servers: readonly Connection[], random: Random, isOver: () => boolean): Promise<void> {
  const name = () => `CUSTOM_${random.below(8)}`;
  const uuid = () => randomUuid(random);
  const requests: readonly (() => {
    readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
    readonly path: string;
    readonly body?: unknown;
  })[] = [
    () => ({ method: 'GET', path: '/' }),
    () => ({
      method: 'GET',
      path: `/resource_providers?${random.pick(['', `in_tree=${uuid()}`, 'resources=VCPU:1', `member_of=${uuid()}`])}`,
    }),
    () => ({
      method: 'GET',
      path: `/resource_providers/${uuid()}/${random.pick(['', 'traits', 'usages', 'inventories'])}`,
    }),
    () => ({ method: 'GET', path: '/traits?name=startswith:CUSTOM' }),
    () => ({ method: 'PUT', path: `/traits/${name()}` }),
    () => ({ method: 'DELETE', path: `/traits/${name()}` }),
    () => ({ method: 'GET', path: '/resource_classes' }),
    () => ({ method: 'PUT', path: `/resource_classes/${name()}` }),
    () => ({ method: 'DELETE', path: `/resource_classes/${name()}` }),
    () => ({ method: 'GET', path: `/consumers?limit=${1 + random.below(20)}` }),
    () => ({ method: 'GET', path: `/consumers?expiring_before=${new Date().toISOString()}` }),
    () => ({ method: 'PUT', path: `/consumers/${uuid()}/term`, body: { expires_in: 1, consumer_generation: 1 } }),
    () => ({ method: 'GET', path: `/provider_summaries?limit=${1 + random.below(20)}` }),
    () => ({ method: 'GET', path: `/allocation_candidates?resources=VCPU:1&limit=${1 + random.below(5)}` }),
    () => ({ method: 'GET', path: '/allocation_candidates/explanation?resources=VCPU:7' }),
    () => ({ method: 'GET', path: '/allocation_candidates/count?resources=VCPU:2&max=50' }),
    () => ({ method: 'GET', path: `/usages?project_id=${uuid()}` }),
    () => ({ method: 'GET', path: '/changes' }),
    () => ({ method: 'POST', path: '/reshaper', body: { inventories: {}, allocations: {} } }),
    () => ({ method: 'POST', path: '/resource_providers', body: { name: uuid() } }),
    () => ({ method: 'DELETE', path: `/resource_providers/${uuid()}` }),
    () => ({ method: 'DELETE', path: `/allocations/${uuid()}` }),
    () => ({ method: 'GET', path: '/healthcheck' }),
  ];
  while (!isOver()) {
    await random.pick(servers).send({ ...random.pick(requests)(), microversion: random.pick(versions) });
    await sleep(random.below(60));
  }
}
