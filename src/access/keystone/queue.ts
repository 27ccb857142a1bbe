import { KeystoneUnreachable } from './transport.ts';

/** Who asks a question: clients take turns, however many questions each of them has. */
export type Asker = {
  /** The client: its address, or whatever tells clients apart. */
  readonly client: string;
  /** A signal that is aborted where nobody waits for the answer any more: a question that still waits then leaves the queue. */
  readonly gone: AbortSignal;
};

/** Questions to Keystone: a limited number is asked at a time, and the others wait for their turn. */
export type KeystoneQueue = {
  /** How many wait for their turn. */
  readonly size: number;
  /**
   * Asks a question as soon as its turn comes.
   *
   * @throws KeystoneBusy where too many wait, NobodyWaits where the asker has gone, and what `question` throws
   */
  ask<T>(question: () => Promise<T>, asker: Asker): Promise<T>;
};

/** So many questions wait for Keystone that this one was not asked. */
export class KeystoneBusy extends Error {}

/** The clients that wanted the answer left before the question was asked. */
export class NobodyWaits extends Error {}

type Waiting = { readonly begin: () => void; readonly refuse: (reason: unknown) => void };

/**
 * Clients take turns, so that a client with a thousand questions delays another one's by one question only. Where too many wait, the
 * youngest question of the client with most of them is refused. While Keystone answers nobody, those that wait get the same failure as
 * those that have asked: waiting longer would not help them.
 *
 * @param options.atATime how many questions are asked at a time
 * @param options.mostWaiting how many may wait
 */
export function openKeystoneQueue({
  atATime,
  mostWaiting,
}: {
  readonly atATime: number;
  readonly mostWaiting: number;
}): KeystoneQueue {
  /** The questions of each client that wait, the oldest first; the client whose turn is next is the first. */
  const waitingOf = new Map<string, Set<Waiting>>();
  let size = 0;
  let asked = 0;
  /** When Keystone answered last, by `performance.now()`. */
  let answeredMs = Number.NEGATIVE_INFINITY;

  function put(client: string, question: Waiting): void {
    const others = waitingOf.get(client);
    if (others === undefined) waitingOf.set(client, new Set([question]));
    else others.add(question);
    size += 1;
  }

  /** Removes a question. @returns whether it was still waiting */
  function remove(client: string, question: Waiting): boolean {
    const others = waitingOf.get(client);
    if (!others?.delete(question)) return false;
    if (others.size === 0) waitingOf.delete(client);
    size -= 1;
    return true;
  }

  /** Makes room for a question of a client. @returns whether there is any */
  function makeRoom(client: string): boolean {
    if (size < mostWaiting) return true;
    const own = (waitingOf.get(client)?.size ?? 0) + 1;
    const [most, questions] = [...waitingOf].reduce((a, b) => (b[1].size > a[1].size ? b : a));
    const youngest = [...questions].at(-1);
    if (own >= questions.size || youngest === undefined) return false;
    remove(most, youngest);
    youngest.refuse(busy(mostWaiting));
    return true;
  }

  function beginNext(): void {
    while (asked < atATime) {
      const [next] = waitingOf;
      if (next === undefined) return;
      const [client, questions] = next;
      const [oldest] = questions;
      if (oldest === undefined) return;
      remove(client, oldest);
      // The client goes behind the others.
      if (questions.size > 0) {
        waitingOf.delete(client);
        waitingOf.set(client, questions);
      }
      asked += 1;
      oldest.begin();
    }
  }

  function failAll(reason: unknown): void {
    const all = [...waitingOf.values()].flatMap((questions) => [...questions]);
    waitingOf.clear();
    size = 0;
    for (const { refuse } of all) refuse(reason);
  }

  async function run<T>(question: () => Promise<T>): Promise<T> {
    const startedMs = performance.now();
    try {
      const answer = await question();
      answeredMs = performance.now();
      return answer;
    } catch (error) {
      if (!(error instanceof KeystoneUnreachable)) answeredMs = performance.now();
      else if (answeredMs < startedMs) failAll(error);
      throw error;
    } finally {
      asked -= 1;
      beginNext();
    }
  }

  async function turn({ client, gone }: Asker): Promise<void> {
    if (gone.aborted) throw new NobodyWaits();
    if (!makeRoom(client)) throw busy(mostWaiting);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const question: Waiting = { begin: resolve, refuse: reject };
    const leave = (): void => {
      if (remove(client, question)) reject(new NobodyWaits());
    };
    gone.addEventListener('abort', leave, { once: true });
    put(client, question);
    beginNext();
    try {
      await promise;
    } finally {
      gone.removeEventListener('abort', leave);
    }
  }

  return {
    get size() {
      return size;
    },
    ask: async (question, asker) => {
      await turn(asker);
      return run(question);
    },
  };
}

const busy = (most: number): KeystoneBusy =>
  new KeystoneBusy(`${most} requests wait for Keystone already, as many as may.`);
