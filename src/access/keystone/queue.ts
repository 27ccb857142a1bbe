import { openFairSeats } from '../../queue/fair_seats.ts';
import { KeystoneUnreachable } from './transport.ts';

/** The client of a question. Clients take turns, however many questions each of them has. */
export type QuestionClient = {
  /** The client: its address, or whatever tells clients apart. */
  readonly client: string;
  /** A signal that is aborted where no request waits for the answer any more. A question that is still in the queue then leaves it. */
  readonly gone: AbortSignal;
};

/** Questions to Keystone: a limited number is asked at a time, and the others wait for their turn. */
export type KeystoneQueue = {
  /** How many wait for their turn. */
  readonly size: number;
  /**
   * Asks a question as soon as its turn comes.
   *
   * @throws KeystoneBusy where too many questions wait, QuestionAbandoned where all clients have left, and what `question` throws
   */
  ask<T>(question: () => Promise<T>, client: QuestionClient): Promise<T>;
};

/** So many questions wait for Keystone that this one was not asked. */
export class KeystoneBusy extends Error {}

/** The clients that wanted the answer left before the question was asked. */
export class QuestionAbandoned extends Error {}

/** How long Keystone must have given no answer until the questions in the queue fail with one that was asked, in milliseconds. */
const silentMs = 2_000;

type Waiting = { readonly begin: () => void; readonly refuse: (reason: unknown) => void };

/**
 * Clients take turns, so that a client with a thousand questions delays another one's by one question only. Where too many wait, the
 * youngest question of the client with most of them is refused. While Keystone gives no answer at all, the questions in the queue fail
 * together with those that were asked: to wait longer would not help.
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
  const waiting = openFairSeats<Waiting>({ most: mostWaiting, takeAway: ({ refuse }) => refuse(busy(mostWaiting)) });
  let asked = 0;
  /** Since when questions are asked without any answer, by `performance.now()`. */
  let silentSinceMs = 0;

  function beginNext(): void {
    while (asked < atATime) {
      const next = waiting.next();
      if (next === undefined) return;
      if (asked === 0) silentSinceMs = performance.now();
      asked += 1;
      next.begin();
    }
  }

  async function run<T>(question: () => Promise<T>): Promise<T> {
    try {
      const answer = await question();
      silentSinceMs = performance.now();
      return answer;
    } catch (error) {
      // One that had little time left, or whose connection broke, tells nothing about the others.
      if (!(error instanceof KeystoneUnreachable)) silentSinceMs = performance.now();
      else if (performance.now() - silentSinceMs >= silentMs) for (const { refuse } of waiting.clear()) refuse(error);
      throw error;
    } finally {
      asked -= 1;
      beginNext();
    }
  }

  async function waitForTurn({ client, gone }: QuestionClient): Promise<void> {
    if (gone.aborted) throw new QuestionAbandoned();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const question: Waiting = { begin: resolve, refuse: reject };
    if (!waiting.take(client, question)) throw busy(mostWaiting);
    const leave = (): void => {
      if (waiting.leave(client, question)) reject(new QuestionAbandoned());
    };
    gone.addEventListener('abort', leave, { once: true });
    beginNext();
    try {
      await promise;
    } finally {
      gone.removeEventListener('abort', leave);
    }
  }

  return {
    get size() {
      return waiting.size;
    },
    ask: async (question, client) => {
      await waitForTurn(client);
      return run(question);
    },
  };
}

const busy = (most: number): KeystoneBusy =>
  new KeystoneBusy(`${most} requests wait for Keystone already, as many as may.`);
