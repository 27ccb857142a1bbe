import { openFairSeats } from '../../queue/fair_seats.ts';
import { KeystoneUnreachable } from './transport.ts';

/** The client for which a token is validated. Clients take turns, however many validations each of them has. */
export type WaitingClient = {
  /** The address of the client, or whatever distinguishes clients. */
  readonly client: string;
  /** A signal that is aborted where no request waits for the answer any more. A validation in the queue then leaves the queue. */
  readonly gone: AbortSignal;
};

/** Token validations by Keystone: a limited number runs at a time, and further ones wait for their turn. */
export type KeystoneQueue = {
  /** How many wait for their turn. */
  readonly size: number;
  /**
   * Runs a validation as soon as its turn comes.
   *
   * @throws KeystoneBusy where too many validations wait, ValidationAbandoned where all clients have left, and what `validation` throws
   */
  run<T>(validation: () => Promise<T>, client: WaitingClient): Promise<T>;
};

/** So many validations wait for their turn that this one was refused. */
export class KeystoneBusy extends Error {}

/** The clients that waited for the validation left before its turn. */
export class ValidationAbandoned extends Error {}

/** If Keystone has answered nothing for this long, a validation that fails lets all in the queue fail, in milliseconds. */
const silentMs = 2_000;

type QueuedValidation = { readonly begin: () => void; readonly refuse: (reason: unknown) => void };

/**
 * Clients take turns, so that a client with a thousand validations delays the validation of another client by one only. Where too many
 * wait, the newest validation of the client with most of them is refused. While Keystone does not answer at all, the validations in the
 * queue fail together with the validations under way: waiting longer would not help.
 *
 * @param options.atATime how many validations run at a time
 * @param options.mostWaiting how many may wait
 */
export function openKeystoneQueue({
  atATime,
  mostWaiting,
}: {
  readonly atATime: number;
  readonly mostWaiting: number;
}): KeystoneQueue {
  const waiting = openFairSeats<QueuedValidation>({
    most: mostWaiting,
    onEvicted: ({ refuse }) => refuse(busy(mostWaiting)),
  });
  let running = 0;
  /** Since when validations run without any answer, by `performance.now()`. */
  let silentSinceMs = 0;

  function beginNext(): void {
    while (running < atATime) {
      const next = waiting.next();
      if (next === undefined) return;
      if (running === 0) silentSinceMs = performance.now();
      running += 1;
      next.begin();
    }
  }

  async function runNow<T>(validation: () => Promise<T>): Promise<T> {
    try {
      const answer = await validation();
      silentSinceMs = performance.now();
      return answer;
    } catch (error) {
      // A validation that had little time left, or whose connection broke, is no sign that other validations fail.
      if (!(error instanceof KeystoneUnreachable)) silentSinceMs = performance.now();
      else if (performance.now() - silentSinceMs >= silentMs) for (const { refuse } of waiting.clear()) refuse(error);
      throw error;
    } finally {
      running -= 1;
      beginNext();
    }
  }

  async function waitForTurn({ client, gone }: WaitingClient): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const validation: QueuedValidation = { begin: resolve, refuse: reject };
    if (!waiting.take(client, validation)) throw busy(mostWaiting);
    const leave = (): void => {
      if (waiting.leave(client, validation)) reject(new ValidationAbandoned());
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
    run: async (validation, client) => {
      await waitForTurn(client);
      return runNow(validation);
    },
  };
}

const busy = (most: number): KeystoneBusy =>
  new KeystoneBusy(`${most} requests wait for Keystone already, and no more may wait.`);
