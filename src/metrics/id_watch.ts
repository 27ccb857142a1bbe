import type { Logger } from 'pino';
import type { Database } from '../../db/engine/connect.ts';
import { type IdUse, idProblem, readIdUse } from '../../db/schema/id_sequences.ts';
import type { Outages } from '../log/outages.ts';
import { atIntervals } from './gathering.ts';

/** How far the ids of each table are used, as it is known in this process. */
export type IdWatch = {
  /** Reads it, once a minute at most, and logs each table that has passed a threshold. It does not throw. */
  look(): Promise<void>;
  /** What is used of the ids, 0 to 1, by table, as it was last read. */
  used(): ReadonlyMap<string, number>;
};

/** A table is logged when so much of its ids is used, once for each of these. */
const thresholds = [0.5, 0.75, 0.9, 0.97];
const usuallyMs = 60_000;

/**
 * Opens a watch over the ids of all tables. It has no timer: work that is done from time to time looks.
 *
 * @param options.everyMs how much time is between two reads, at least
 */
export function openIdWatch(
  database: Pick<Database, 'kysely'>,
  {
    logger,
    outages,
    everyMs = usuallyMs,
  }: { readonly logger: Pick<Logger, 'warn'>; readonly outages: Outages; readonly everyMs?: number },
): IdWatch {
  let known: readonly IdUse[] = [];
  /** The threshold that was last logged, by table; none if the table is below all of them. */
  const logged = new Map<string, number>();
  const read = async (): Promise<void> => {
    known = await readIdUse(database);
    for (const use of known) {
      const passed = thresholds.findLast((threshold) => use.used >= threshold) ?? 0;
      if (passed > (logged.get(use.table) ?? 0)) logger.warn(idProblem(use, passed));
      logged.set(use.table, passed);
    }
  };
  const now = atIntervals(everyMs, read);
  return {
    look: async () => {
      try {
        await now();
      } catch (error) {
        if (!outages.notice(error))
          logger.warn({ err: error }, 'The used ids could not be read; it is tried again later');
      }
    },
    used: () => new Map(known.map(({ table, used }) => [table, used])),
  };
}
