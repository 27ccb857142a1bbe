import { inBackground, rest } from '../../db/engine/background.ts';
import type { Database } from '../../db/engine/connect.ts';
import {
  assignOwners,
  closeRecords,
  type HeldPosition,
  pruneUsageRecords,
  switchHistoryOff,
  switchHistoryOn,
  takeInHeld,
} from '../../db/statements/usage_history.ts';
import { readHistoryState } from '../../db/statements/usage_records.ts';
import { type Reported, reporting } from '../log/outages.ts';

/** How many existing allocations one transaction records. Their consumers are locked until it ends. */
const takenInAtOnce = 500;
/** How many records one statement closes. */
const closedAtOnce = 1000;
/** How many records one statement removes, and the time between two searches for old ones. */
const [prunedAtOnce, pruneEveryMs] = [1000, 600_000];
/** How many consumers without an owner one transaction assigns to their owner, and the time between two such transactions. */
const [assignedAtOnce, assignEveryMs] = [100, 10_000];
/** The time between two attempts to switch the history. */
const switchEveryMs = 5_000;
/** How long a start waits until the history is on. The switch may take longer, since it waits for transactions that write allocations. */
const startsWithinMs = 2_000;

/**
 * Switches the history of usages on or off if the database has the other setting, and removes old records from time to time. Triggers of
 * the database write the history. The setting of the process that starts last is used by all processes. Once the promise has resolved,
 * all writes are recorded, unless the switch waits for a transaction.
 *
 * @param options.keep how many seconds a record is kept after its end
 * @returns a function that stops it, and resolves when its last statement has ended
 */
export async function keepHistory(
  database: Database,
  reported: Reported,
  { enabled, keep }: { readonly enabled: boolean; readonly keep: number },
): Promise<() => Promise<void>> {
  const before = await readHistoryState(database);
  const stopping = new AbortController();
  const { signal } = stopping;
  const failed = reporting(reported, 'The history of usages could not be switched; the next try is soon');
  const on = Promise.withResolvers<void>();
  const switched =
    enabled || before !== 'off'
      ? untilSwitched({ database, reported, enabled, signal, failed, whenOn: on.resolve })
      : Promise.resolve();
  if (enabled && before !== 'on') await Promise.race([on.promise, rest(startsWithinMs, signal)]);
  const stopPruning = inBackground({
    everyMs: pruneEveryMs,
    failed: reporting(reported, 'Old records of the history could not be removed; it is tried again later'),
    round: async (stopping) => {
      for (let count = prunedAtOnce; count === prunedAtOnce && !stopping.aborted; ) {
        const startedMs = performance.now();
        count = await pruneUsageRecords(database, { keepSeconds: keep, limit: prunedAtOnce });
        await rest(4 * (performance.now() - startedMs), stopping);
      }
    },
  });
  const stopAssigning = enabled
    ? inBackground({
        everyMs: assignEveryMs,
        failed: reporting(
          reported,
          'Records of the history could not be given to their consumers; it is tried again later',
        ),
        round: async () => {
          await assignOwners(database, assignedAtOnce);
        },
      })
    : async () => {};
  return async () => {
    stopping.abort();
    await Promise.all([switched, stopPruning(), stopAssigning()]);
  };
}

type Switching = {
  readonly database: Database;
  readonly reported: Reported;
  readonly enabled: boolean;
  readonly signal: AbortSignal;
  readonly failed: (error: unknown) => void;
  readonly whenOn: () => void;
};

async function untilSwitched({ database, reported, enabled, signal, failed, whenOn }: Switching): Promise<void> {
  const { logger } = reported;
  while (!signal.aborted) {
    try {
      if (!enabled && (await switchHistoryOff(database, signal)))
        logger.info('The history of usages is off from now on.');
      await close(database, signal);
      if (!enabled) return;
      if (await switchHistoryOn(database, signal)) logger.info('The history of usages is on from now on.');
      whenOn();
      await takeIn(database, signal);
      return;
    } catch (error) {
      if (signal.aborted) return;
      failed(error);
      await rest(switchEveryMs, signal);
    }
  }
}

/** Records the allocations that existed when the history was switched on. */
function takeIn(database: Database, signal: AbortSignal): Promise<void> {
  let position: HeldPosition | undefined;
  return inParts(async () => {
    position = await takeInHeld(database, position, takenInAtOnce);
    return position !== undefined;
  }, signal);
}

/** Closes the open records, after the history was switched off. */
const close = (database: Database, signal: AbortSignal): Promise<void> =>
  inParts(() => closeRecords(database, closedAtOnce), signal);

/** Repeats a part of some work until all is done. At least half of the time of the database is left for requests. */
async function inParts(part: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
  for (let isMore = true; isMore && !signal.aborted; ) {
    const startedMs = performance.now();
    isMore = await part();
    if (isMore) await rest(performance.now() - startedMs, signal);
  }
}
