import { setImmediate } from 'node:timers/promises';
import { openSlowLane } from '../../db/engine/slow_lane.ts';
import type { BatchOptions, Entry } from '../../src/queue/items.ts';
import { inBatches } from '../../src/queue/queue.ts';

/** Waits for this number of iterations of the event loop. */
export const ticks = async (count: number): Promise<void> => {
  for (let tick = 0; tick < count; tick += 1) await setImmediate();
};

/** An error of the server, with an SQLSTATE. */
export const databaseError = (code: string) => Object.assign(new Error(code), { severity: 'ERROR', code });

/** The part of a database that batches use, which never fails. @param pollSockets simulates an iteration of the event loop */
export const databaseOf = (statementTimeoutMs = 0, pollSockets = async () => {}) => ({
  pollSockets,
  slowLane: openSlowLane(),
  statementTimeoutMs,
  engine: 'postgresql' as const,
});

/** Batches of names, and a record of them. Items that `perform` does not settle are answered with their names. */
export function recorded(
  options: Partial<BatchOptions<string>>,
  perform: (batch: readonly Entry<string, string>[]) => Promise<void> | void = () => {},
) {
  const batches: (readonly string[])[] = [];
  const ask = inBatches<string, string>(databaseOf(), { limit: 9, ...options }, async (batch) => {
    batches.push(batch.map(({ item }) => item));
    await setImmediate();
    await perform(batch);
    for (const { item, resolve } of batch) resolve(item);
  });
  return { ask, batches };
}

/** The answer, or the message of the error. */
export const reasonOf = (answer: Promise<unknown>): Promise<unknown> =>
  answer.then(
    (answer) => answer,
    (error) => error.message,
  );
