import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { at } from '../support/requests.ts';
import { complaintAbout, hostIn, isKnown, isOverLimit, isSuccess, type Reply, type Send } from './client.ts';
import type { Ledger } from './ledger.ts';

/** Clients that claim, release, and write inventories, and read after each write what they have written. */
export type Load = {
  /** When claims were acknowledged, by `Date.now()`. */
  readonly acknowledgedMs: readonly number[];
  /** How often each status was answered; 0 for a broken connection. */
  readonly statuses: Map<number, number>;
  /** Reads that did not show an earlier write of the same client, and answers that must not come. */
  readonly complaints: string[];
  /** How long each answer took. */
  readonly tookMs: readonly number[];
  /** Lets all requests end, and begins none. */
  pause(): Promise<void>;
  resume(): void;
};

/** Each client waits so long after each of its requests: some 150 requests a second in all. */
const pauseMs = 40;
/** How many consumers a client keeps. */
const kept = 40;
/** The term of a consumer that ends soon, unless it is renewed. */
const briefSeconds = 2;

/** The project of some of the clients, which together want more VCPUs than its limit. */
export const limitedProject = { name: 'limited', vcpus: 60, clients: 2 } as const;

/** @param hosts some have little room, so that claims are refused */
export function startLoad(send: Send, ledger: Ledger, hosts: readonly string[], stocks: readonly string[]): Load {
  const acknowledgedMs: number[] = [];
  const statuses = new Map<number, number>();
  const complaints: string[] = [];
  const tookMs: number[] = [];
  let gate = Promise.withResolvers<void>();
  gate.resolve();
  let underWay = 0;
  let isPaused = false;

  const ask = async (...request: Parameters<Send>): Promise<Reply> => {
    const reply = await send(...request);
    statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
    tookMs.push(reply.ms);
    const complaint = complaintAbout(reply);
    if (complaint !== undefined) complaints.push(`${request.slice(0, 2).join(' ')}: ${complaint}`);
    await sleep(pauseMs);
    return reply;
  };
  const bodyOf = (index: number, host: string, term: number | undefined) => ({
    ...(index % 2 === 0
      ? { allocations: { [host]: { resources: { VCPU: 1 } } } }
      : { candidates: 'resources=VCPU:1&required=!CUSTOM_STOCK' }),
    ...(term === undefined ? {} : { expires_in: term }),
    project_id: index < limitedProject.clients ? limitedProject.name : 'p',
    user_id: 'u',
    consumer_generation: null,
    consumer_type: 'INSTANCE',
  });

  /** Renews the term of every other consumer that ends soon. @returns whether it now lasts */
  const isRenewed = async (consumer: string, generation: unknown): Promise<boolean> => {
    if (typeof generation !== 'number' || Math.random() < 0.5) return false;
    const body = { expires_in: 3600, consumer_generation: generation };
    const reply = await ask('PUT', `/consumers/${consumer}/term`, body);
    const isWritten = isSuccess(reply);
    if (isWritten || !isKnown(reply)) ledger.renewed(consumer, isWritten);
    return isWritten;
  };

  /** One claim, read by another process, and a release of the oldest. */
  const claimOnce = async (index: number, mine: string[]): Promise<void> => {
    const consumer = randomUUID();
    const host = hosts[Math.floor(Math.random() * hosts.length)] ?? '';
    const byName = index % 2 === 0 ? host : undefined;
    const term = Math.random() < 0.1 ? briefSeconds : Math.random() < 0.1 ? 3600 : undefined;
    const sentMs = Date.now();
    const reply = await ask('PUT', `/allocations/${consumer}`, bodyOf(index, host, term));
    if (!isKnown(reply)) {
      ledger.claimed(consumer, byName, false);
      // The removal of ended consumers looks twice a second.
      if (term === briefSeconds) ledger.endsAt(consumer, Date.now() + 6_000);
      return;
    }
    if (isOverLimit(reply)) return releaseOldest(mine);
    if (!isSuccess(reply)) return; // there is no room
    acknowledgedMs.push(Date.now());
    ledger.claimed(consumer, byName, true);
    const isBrief = term === briefSeconds;
    if (isBrief) ledger.endsAt(consumer, Date.now() + 6_000);
    const read = await ask('GET', `/allocations/${consumer}`);
    if (read.status === 200) {
      const shown = hostIn(read);
      const isOver = isBrief && Date.now() > sentMs + 1_900;
      if (!isOver && (shown === undefined || (byName !== undefined && shown !== byName))) {
        complaints.push(`${consumer} was claimed, and another process shows ${read.text}`);
      }
    }
    if (isBrief && !(await isRenewed(consumer, at(read.json, 'consumer_generation')))) return;
    mine.push(consumer);
    if (mine.length > kept) await releaseOldest(mine);
  };

  const releaseOldest = async (mine: string[]): Promise<void> => {
    const oldest = mine.shift();
    if (oldest === undefined) return;
    const removed = await ask('DELETE', `/allocations/${oldest}`);
    if (removed.status === 404) complaints.push(`${oldest} was claimed and not released, and is not found`);
    if (removed.status === 204 || !isKnown(removed)) ledger.released(oldest, removed.status === 204);
    if (removed.status !== 204) return;
    const after = await ask('GET', `/allocations/${oldest}`);
    if (after.status === 200 && hostIn(after) !== undefined) {
      complaints.push(`${oldest} was released, and another process shows ${after.text}`);
    }
  };

  /** One write of an inventory, read by another process. */
  const stockOnce = async (host: string, state: { total: number }): Promise<void> => {
    const before = await ask('GET', `/resource_providers/${host}/inventories`);
    if (before.status !== 200) return;
    const found = at(before.json, 'inventories', 'VCPU', 'total');
    if (!ledger.isPossible(host, found)) complaints.push(`inventories of ${host}: a read shows ${found}`);
    state.total += 1;
    const generation = at(before.json, 'resource_provider_generation');
    const body = { resource_provider_generation: generation, inventories: { VCPU: { total: state.total } } };
    const reply = await ask('PUT', `/resource_providers/${host}/inventories`, body);
    if (reply.status === 409) complaints.push(`inventories of ${host}: ${reply.text}`);
    if (!isKnown(reply)) ledger.stocked(host, state.total, false);
    if (reply.status !== 200) return;
    ledger.stocked(host, state.total, true);
    const after = await ask('GET', `/resource_providers/${host}/inventories`);
    const shown = at(after.json, 'inventories', 'VCPU', 'total');
    if (after.status === 200 && shown !== state.total) {
      complaints.push(`inventories of ${host}: ${state.total} was written, and another process shows ${shown}`);
    }
  };

  const repeat = async (once: () => Promise<void>): Promise<never> => {
    for (;;) {
      await gate.promise;
      underWay += 1;
      await once().catch((error) => complaints.push(String(error)));
      underWay -= 1;
    }
  };
  for (let index = 0; index < 8; index += 1) {
    const mine: string[] = [];
    void repeat(() => claimOnce(index, mine));
  }
  for (const host of stocks) {
    const state = { total: 1_000 };
    void repeat(() => stockOnce(host, state));
  }
  return {
    acknowledgedMs,
    statuses,
    complaints,
    tookMs,
    pause: async () => {
      if (!isPaused) gate = Promise.withResolvers<void>();
      isPaused = true;
      while (underWay > 0) await sleep(20);
    },
    resume: () => {
      isPaused = false;
      gate.resolve();
    },
  };
}
