import { setTimeout as sleep } from 'node:timers/promises';
import { type Random, randomUuid } from '../races/random.ts';
import type { Action } from './action.ts';
import type { Arena } from './arena.ts';
import { newest } from './chooser.ts';
import type { Connection } from './connection.ts';
import type { History } from './history.ts';

/** A reported change of a provider of an arena, and when. For a deleted provider `parts` is `deleted`. */
export type ReportedChange = { readonly uuid: string; readonly parts: readonly string[]; readonly completed: number };

/** A consumer that GET /changes reported, and when. */
export type ReportedConsumer = Pick<ReportedChange, 'uuid' | 'completed'>;

/** A client that follows changes. */
export type Follower = {
  readonly reported: {
    readonly changes: readonly ReportedChange[];
    /** Since when it follows without a gap; undefined if it does not any more. */
    readonly since: number | undefined;
    /** The same of the consumers. They are reported only while the history of usages is on. */
    readonly consumers: { readonly changes: readonly ReportedConsumer[]; readonly since: number | undefined };
  };
  /** Reads until everything that was done before this call must have been reported, and ends. */
  end(): Promise<void>;
};

type Answer = {
  readonly next: string;
  readonly changes: readonly {
    readonly resource_provider?: string;
    readonly parts?: readonly string[];
    readonly deleted?: true;
    readonly consumer?: string;
  }[];
};

const isReported = (answer: Answer | undefined, uuid: string): boolean =>
  answer?.changes.some(({ resource_provider }) => resource_provider === uuid) ?? false;

/** Follows the providers of an arena from now on. */
export async function startFollower(
  arena: Arena,
  history: History<Action>,
  servers: readonly Connection[],
  random: Random,
): Promise<Follower> {
  const changes: ReportedChange[] = [];
  const ofConsumers: { readonly changes: ReportedConsumer[]; since: number | undefined } = {
    changes: [],
    since: undefined,
  };
  const reported: { changes: readonly ReportedChange[]; since: number | undefined; consumers: typeof ofConsumers } = {
    changes,
    since: undefined,
    consumers: ofConsumers,
  };
  const parts = ['provider', 'inventories', 'traits', 'aggregates', 'usages'];
  let asksForConsumers = true;
  let token: string | undefined;
  let isEnding = false;

  const look = async (wait: number): Promise<Answer | undefined> => {
    const requested = asksForConsumers ? [...parts, 'consumers'] : parts;
    const path = `/changes?parts=${requested.join()}${token === undefined ? '' : `&since=${token}`}`;
    const request = {
      method: 'GET',
      path,
      microversion: newest,
      ...(wait > 0 ? { prefer: `wait=${wait}` } : {}),
    } as const;
    const reply = await random.pick(servers).send(request);
    if (reply?.status === 410) {
      token = undefined;
      reported.since = undefined;
      ofConsumers.since = undefined;
    }
    if (reply?.status === 400 && asksForConsumers) {
      // The history is off.
      asksForConsumers = false;
      ofConsumers.since = undefined;
      return look(wait);
    }
    if (reply?.status !== 200) return undefined;
    const answer = reply.body as Answer; // the shape of the API
    token = answer.next;
    const completed = history.now();
    reported.since ??= completed;
    if (asksForConsumers) ofConsumers.since ??= completed;
    for (const { resource_provider: uuid, parts = [], deleted, consumer } of answer.changes) {
      if (consumer !== undefined && arena.consumers.includes(consumer)) {
        ofConsumers.changes.push({ uuid: consumer, completed });
      }
      if (uuid !== undefined && arena.providers.includes(uuid)) {
        changes.push({ uuid, parts: deleted ? ['deleted'] : parts, completed });
      }
    }
    return answer;
  };
  const follow = async (): Promise<Answer | undefined> => {
    for (;;) {
      const answer = await look(1);
      if (isEnding) return answer;
      if (answer === undefined) await sleep(50);
    }
  };
  /** Makes a provider. @returns its UUID; undefined if the servers are unavailable for long */
  const ring = async (): Promise<string | undefined> => {
    for (let tries = 0; tries < 100; tries += 1) {
      const uuid = randomUuid(random);
      const body = { uuid, name: uuid };
      const reply = await random
        .pick(servers)
        .send({ method: 'POST', path: '/resource_providers', microversion: 1028, body });
      if (reply?.status === 200) return uuid;
      await sleep(100);
    }
    return undefined;
  };
  await look(0);
  const following = follow();
  return {
    reported,
    end: async () => {
      isEnding = true;
      // A provider that is made now is reported after all earlier changes.
      const bell = await ring();
      const last = await following;
      if (bell !== undefined && isReported(last, bell)) return;
      for (let tries = 0; bell !== undefined && tries < 100; tries += 1) {
        const answer = await look(1);
        if (isReported(answer, bell)) return;
        if (answer === undefined) await sleep(50);
      }
      reported.since = undefined;
      ofConsumers.since = undefined;
    },
  };
}
