import { randomUUID } from 'node:crypto';
import type { PlacementService } from '../../src/start/service.ts';
import type { Engine } from '../support/engines.ts';
import { type Answer, at, makeProvider, requestsTo, type Send } from '../support/requests.ts';
import { type ConfigOverrides, withTestService } from '../support/services.ts';

/** The body of a claim by query; of a new consumer unless there is a generation. */
export const placed = (candidates: unknown, generation: number | null = null) => ({
  candidates,
  project_id: 'p',
  user_id: 'u',
  consumer_generation: generation,
  consumer_type: 'INSTANCE',
});

/** Calls back with requests at 2.4 to a service with so many hosts, each with 8 VCPU and 1000 MB. */
export async function withHosts(
  engine: Engine,
  count: number,
  use: (send: Send, hosts: readonly string[], service: PlacementService) => Promise<void>,
  overrides: ConfigOverrides = {},
): Promise<void> {
  await withTestService(engine, overrides, async (service) => {
    const send = requestsTo(service, 'placement 2.4');
    const hosts = Array.from({ length: count }, () => randomUUID());
    for (const host of hosts) await makeProvider(send, host, { VCPU: { total: 8 }, MEMORY_MB: { total: 1000 } });
    await use(send, hosts, service);
  });
}

/** The providers of a consumer, in the answer to its claim or to a GET. */
export const providersOf = (json: unknown): readonly string[] => Object.keys(Object(at(json, 'allocations')));

/** Code and detail of an error. */
export const errorOf = ({ json }: Answer): { readonly code: unknown; readonly detail: string } => ({
  code: at(json, 'errors', 0, 'code'),
  detail: String(at(json, 'errors', 0, 'detail')),
});
