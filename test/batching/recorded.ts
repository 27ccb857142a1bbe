import { setImmediate } from 'node:timers/promises';
import { openSlowLane } from '../../db/engine/slow_lane.ts';
import { type BatchOptions, type Entry, inBatches } from '../../src/batching/batches.ts';

/** Lets callbacks run that wait for this number of turns of the event loop. */
export const ticks = async (count: number): Promise<void> => {
  for (let tick = 0; tick < count; tick += 1) await setImmediate();
};

/** An error as the server gives it, with an SQLSTATE. */
export const databaseError = (code: string) => Object.assign(new Error(code), { severity: 'ERROR', code });

/** What batches need of a database: one that is always there. @param turn stands for a turn of the event loop */
export const databaseOf = (statementTimeoutMs = 0, turn = async () => {}) => ({
  turn,
  slowLane: openSlowLane(),
  statementTimeoutMs,
});

/** Batches of names, of which a record is kept; `perform` settles what it likes, and the others are answered by their names. */
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
export const reasonOf = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    (answer) => answer,
    (error) => error.message,
  );
