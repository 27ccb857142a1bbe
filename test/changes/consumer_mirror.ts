import assert from 'node:assert/strict';
import { accepted, at, listAt, type Send } from '../support/requests.ts';

/** What a client knows of a consumer. */
type ConsumerCopy = {
  readonly name: unknown;
  readonly owner: readonly unknown[];
  /** The amounts by the UUID of the provider. */
  readonly held: Readonly<Record<string, unknown>>;
};

/** A copy of all consumers that follows changes. */
export type ConsumerMirror = {
  /** Reads from a service which consumers have changed, and reads these from another service. @returns how many were reported */
  follow(changes: Send, reads: Send): Promise<number>;
  /**
   * Compares the copy with a service when no more changes are reported: until then it may remove consumers whose terms have expired.
   *
   * @param present what a provider is called now by which UUID the copy may call it
   */
  check(send: Send, present: (uuid: string) => string): Promise<void>;
  /** How often everything was read, including the first time. */
  readonly reads: number;
};

/**
 * Reads all consumers, and from then on the reported ones.
 *
 * @param onGone called for each consumer that is reported as removed
 */
export async function openConsumerMirror(
  first: Send,
  onGone: (consumer: string, ended: unknown) => void,
): Promise<ConsumerMirror> {
  let copies = new Map<string, ConsumerCopy>();
  let token = '';
  let reads = 0;
  const readAll = async (send: Send): Promise<void> => {
    token = String(at(accepted(await send('GET', '/changes?parts=consumers')).json, 'next'));
    copies = await readConsumers(send);
    reads += 1;
  };
  const follow = async (changes: Send, read: Send): Promise<number> => {
    const answer = await changes('GET', `/changes?since=${token}&parts=consumers`);
    if (answer.status === 410) {
      await readAll(read);
      return 1;
    }
    const reported = listAt(accepted(answer).json, 'changes').filter((each) => at(each, 'consumer') !== undefined);
    for (const each of reported) {
      const consumer = String(at(each, 'consumer'));
      if (at(each, 'gone') === true) {
        onGone(consumer, at(each, 'ended'));
        copies.delete(consumer);
        continue;
      }
      const copy = copyOf(accepted(await read('GET', `/allocations/${consumer}`)).json);
      if (copy === undefined) copies.delete(consumer);
      else copies.set(consumer, copy);
    }
    token = String(at(answer.json, 'next'));
    return reported.length;
  };
  await readAll(first);
  return {
    get reads() {
      return reads;
    },
    follow,
    check: async (send, present) => {
      const named = (all: ReadonlyMap<string, ConsumerCopy>) =>
        [...all]
          .map(([consumer, { held, ...copy }]) => ({
            consumer,
            ...copy,
            held: Object.fromEntries(Object.entries(held).map(([uuid, amounts]) => [present(uuid), amounts])),
          }))
          .toSorted((one, other) => (one.consumer < other.consumer ? -1 : 1));
      let shown: Map<string, ConsumerCopy>;
      do {
        while ((await follow(send, send)) > 0);
        shown = await readConsumers(send);
      } while ((await follow(send, send)) > 0);
      assert.deepEqual(named(copies), named(shown));
    },
  };
}

/**
 * What all consumers have. GET /holdings says which there are, and sums the rows of a class that another program has written twice; of each of them
 * the same is read as when it is reported.
 */
async function readConsumers(send: Send): Promise<Map<string, ConsumerCopy>> {
  const consumers = new Set<string>();
  for (let next: unknown = '/holdings?limit=1000'; next !== undefined; ) {
    const { json } = accepted(await send('GET', String(next)));
    for (const row of listAt(json, 'holdings')) consumers.add(String(at(row, 'consumer')));
    next = at(json, 'holdings_links', 0, 'href');
  }
  const copies = new Map<string, ConsumerCopy>();
  for (const consumer of consumers) {
    const copy = copyOf(accepted(await send('GET', `/allocations/${consumer}`)).json);
    if (copy !== undefined) copies.set(consumer, copy);
  }
  return copies;
}

/** What a consumer has, by an answer of GET /allocations/{consumer}; undefined if it has nothing. */
function copyOf(json: unknown): ConsumerCopy | undefined {
  const held = Object.entries(at(json, 'allocations') as Readonly<Record<string, unknown>>); // as openapi-2.yaml says
  if (held.length === 0) return undefined;
  return {
    name: at(json, 'name'),
    owner: ownerOf(json),
    held: Object.fromEntries(held.map(([uuid, each]) => [uuid, at(each, 'resources')])),
  };
}

const ownerOf = (json: unknown): readonly unknown[] =>
  ['project_id', 'user_id', 'consumer_type'].map((name) => at(json, name));
