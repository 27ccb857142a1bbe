import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../races/random.ts';
import { randomUuid } from '../races/random.ts';
import type { Action } from './action.ts';
import type { Connection } from './connection.ts';
import { setAggregates, stock } from './provider_actions.ts';
import type { Inventory, State } from './state.ts';

/** A few providers and consumers of one history, which no other client uses. */
export type Arena = {
  readonly providers: readonly string[];
  readonly consumers: readonly string[];
  /** The projects of its consumers. */
  readonly projects: readonly string[];
  /** All providers are in the first one at first. */
  readonly aggregates: readonly [string, string];
  readonly initial: State;
};

const inventory = (total: number, allocation_ratio = 1): Inventory => ({
  total,
  reserved: 0,
  min_unit: 1,
  max_unit: total,
  step_size: 1,
  allocation_ratio,
});

/**
 * Makes the providers.
 *
 * @param pauseMs the time between two requests
 * @returns undefined if one of the requests failed: what it did is unknown, so the arena is of no use
 */
export async function makeArena({ send }: Connection, random: Random, pauseMs = 0): Promise<Arena | undefined> {
  const uuids = (count: number) => Array.from({ length: count }, () => randomUuid(random));
  const providers = uuids(3);
  const aggregates = [randomUuid(random), randomUuid(random)] as const;
  const inventories = { VCPU: inventory(4, 2), MEMORY_MB: inventory(6) };
  const initial: Record<string, State['providers'][string]> = {};
  for (const uuid of providers) {
    const name = `${uuid} 0`;
    const steps = [
      { method: 'POST', path: '/resource_providers', minor: 20, body: { uuid, name } },
      stock(28, uuid, 0, inventories),
      setAggregates(28, uuid, 1, [aggregates[0]]),
    ] as const;
    for (const step of steps) {
      if (pauseMs > 0) await sleep(pauseMs);
      if ((await send(step))?.status !== 200) return undefined;
    }
    initial[uuid] = { name, generation: 2, inventories, traits: [], aggregates: [aggregates[0]] };
  }
  const projects = uuids(2);
  return { providers, consumers: uuids(5), projects, aggregates, initial: { providers: initial, consumers: {} } };
}

/** What clients of an arena have seen last. It may be outdated. */
export type Notes = {
  readonly generations: Map<string, number | null>;
  readonly tags: Map<string, string>;
};

/** Notes what an answer shows. */
export function takeNotes(
  { generations, tags }: Notes,
  { method, path }: Action,
  reply: { readonly status: number; readonly etag: string | undefined; readonly body: unknown },
): void {
  const [, kind = '', uuid = ''] = path.split(/[/?]/);
  if (reply.etag !== undefined) tags.set(path, reply.etag);
  else if (method !== 'GET') tags.delete(path);
  const body = (reply.body ?? {}) as Readonly<Record<string, unknown>>;
  const shown = body.consumer_generation ?? body.resource_provider_generation ?? body.generation;
  if (typeof shown === 'number') generations.set(uuid, shown);
  else if (kind === 'allocations' && (reply.status === 404 || method === 'DELETE' || method === 'GET')) {
    generations.set(uuid, null);
  } else if (reply.status === 204 && method === 'PUT') {
    generations.delete(uuid);
  }
}
