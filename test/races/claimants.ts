import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { accepted, at, makeProvider, newClaim, type Send } from '../support/requests.ts';

/** Makes a provider with room for 100,000 claims. */
export async function makeHost(send: Send): Promise<string> {
  const host = randomUUID();
  await makeProvider(send, host, { VCPU: { total: 100_000 } });
  return host;
}

export const claim = (send: Send, host: string, consumer: string) =>
  send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 1 } }));

/** Clients that claim, each for one new consumer after the other. */
export type Claimants = {
  /** Consumers whose claim was answered 204. */
  readonly acknowledged: readonly string[];
  /** How often each status was answered. */
  readonly statuses: ReadonlyMap<number, number>;
  stop(): Promise<void>;
};

/** Starts the clients. A 503 must have a Retry-After. */
export function startClaimants(send: Send, host: string, clients: number): Claimants {
  const acknowledged: string[] = [];
  const statuses = new Map<number, number>();
  let ended = false;
  const client = async (): Promise<void> => {
    while (!ended) {
      const consumer = randomUUID();
      const { status, headers: got } = await claim(send, host, consumer);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status === 204) acknowledged.push(consumer);
      if (status === 503) {
        assert.equal(got.get('retry-after'), '1');
        await sleep(20);
      }
    }
  };
  const running = Promise.all(Array.from({ length: clients }, client));
  running.catch(() => {}); // stop() reports the error
  return {
    acknowledged,
    statuses,
    stop: async () => {
      ended = true;
      await running;
    },
  };
}

/** Waits until this many more claims were answered 204. @throws if that takes longer */
export async function untilClaimed({ acknowledged }: Claimants, more: number, withinMs = 30_000): Promise<void> {
  const before = acknowledged.length;
  const startedMs = Date.now();
  while (acknowledged.length < before + more) {
    assert.ok(Date.now() - startedMs < withinMs, `${more} claims are written within ${withinMs} ms`);
    await sleep(20);
  }
}

/** The consumers with an allocation on a host, as the service shows them. */
export async function holdersOn(send: Send, host: string): Promise<readonly string[]> {
  const { json } = accepted(await send('GET', `/resource_providers/${host}/allocations`));
  return Object.keys(Object(at(json, 'allocations')));
}
