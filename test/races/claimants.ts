import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PlacementService } from '../../src/service.ts';

export const headers = {
  'x-auth-token': 'admin',
  'openstack-api-version': 'placement 1.39',
  'content-type': 'application/json',
};

type App = PlacementService['app'];

export const send = (app: App, method: string, path: string, body: unknown) =>
  app.request(path, { method, headers, body: JSON.stringify(body) });

/** Makes a provider with room for 100,000 claims. */
export async function makeHost(app: App): Promise<string> {
  const host = randomUUID();
  assert.equal((await send(app, 'POST', '/resource_providers', { uuid: host, name: 'host' })).status, 200);
  const stocked = { resource_provider_generation: 0, inventories: { VCPU: { total: 100_000 } } };
  assert.equal((await send(app, 'PUT', `/resource_providers/${host}/inventories`, stocked)).status, 200);
  return host;
}

export const claim = (app: App, host: string, consumer: string) =>
  send(app, 'PUT', `/allocations/${consumer}`, {
    allocations: { [host]: { resources: { VCPU: 1 } } },
    project_id: 'p',
    user_id: 'u',
    consumer_generation: null,
    consumer_type: 'INSTANCE',
  });

/** Clients that claim, each for one new consumer after the other. */
export type Claimants = {
  /** Consumers whose claim was answered 204. */
  readonly acknowledged: readonly string[];
  /** How often each status was answered. */
  readonly statuses: ReadonlyMap<number, number>;
  stop(): Promise<void>;
};

/** A 503 must say when to come back. */
export function startClaimants(app: App, host: string, clients: number): Claimants {
  const acknowledged: string[] = [];
  const statuses = new Map<number, number>();
  let ended = false;
  const client = async (): Promise<void> => {
    while (!ended) {
      const consumer = randomUUID();
      const { status, headers: got } = await claim(app, host, consumer);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status === 204) acknowledged.push(consumer);
      if (status === 503) {
        assert.equal(got.get('retry-after'), '1');
        await sleep(20);
      }
    }
  };
  const running = Promise.all(Array.from({ length: clients }, client));
  running.catch(() => {}); // told by stop()
  return {
    acknowledged,
    statuses,
    stop: async () => {
      ended = true;
      await running;
    },
  };
}

/** Waits until so many more claims were answered 204. @throws where that takes longer. */
export async function untilClaimed({ acknowledged }: Claimants, more: number, withinMs = 30_000): Promise<void> {
  const before = acknowledged.length;
  const startedMs = Date.now();
  while (acknowledged.length < before + more) {
    assert.ok(Date.now() - startedMs < withinMs, `${more} claims are written within ${withinMs} ms`);
    await sleep(20);
  }
}

/** The consumers that have an allocation on a host, by what the service says. */
export async function holdersOn(app: App, host: string): Promise<readonly string[]> {
  const answer = await app.request(`/resource_providers/${host}/allocations`, { headers });
  const { allocations } = (await answer.json()) as { readonly allocations: Readonly<Record<string, unknown>> };
  return Object.keys(allocations);
}
