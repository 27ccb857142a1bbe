import { setTimeout as sleep } from 'node:timers/promises';
import { at } from '../requests.ts';
import type { Send } from './client.ts';

/** A client that follows `GET /changes`, by any process. */
export type Follower = {
  /** Until when all changes of a provider were told, by `Date.now()`: the last time it was told. */
  toldMs(provider: string): number;
  /** How often it had to read everything anew. */
  readonly restarts: number;
};

/** Follows from now on, for ever. */
export function startFollower(send: Send): Follower {
  const told = new Map<string, number>();
  let everythingMs = 0;
  let restarts = -1;
  const follow = async (): Promise<void> => {
    let token: string | undefined;
    for (;;) {
      const sentMs = Date.now();
      if (token === undefined) {
        const all = await send('GET', '/resource_providers');
        if (all.status !== 200) await sleep(100);
        else {
          token = all.headers.get('placement-changes-token') ?? undefined;
          everythingMs = sentMs;
          restarts += 1;
        }
        continue;
      }
      const path = `/changes?since=${encodeURIComponent(token)}`;
      const { status, json } = await send('GET', path, undefined, { prefer: 'wait=2' });
      if (status === 410) token = undefined;
      if (status !== 200) {
        await sleep(100);
        continue;
      }
      token = String(at(json, 'next'));
      const nowMs = Date.now();
      for (const change of at(json, 'changes') as readonly unknown[]) {
        told.set(String(at(change, 'resource_provider')), nowMs);
      }
    }
  };
  void follow();
  return {
    toldMs: (provider) => Math.max(everythingMs, told.get(provider) ?? 0),
    get restarts() {
      return restarts;
    },
  };
}
