import { inBackground } from '../../db/engine/background.ts';
import type { Database } from '../../db/engine/connect.ts';
import { type IdUse, idProblem, readIdUse } from '../../db/schema/id_sequences.ts';
import { type Reported, reporting } from '../log/outages.ts';

/** How far the ids of each table are used, as it is known in this process. */
export type IdWatch = {
  /** Reads it, and logs each table that has passed a threshold. It does not throw. */
  check(): Promise<void>;
  /** The used share of the ids, 0 to 1, by table, as it was last read. */
  used(): ReadonlyMap<string, number>;
  close(): Promise<void>;
};

/** A table is logged when this share of its ids is used, once for each share. */
const thresholds = [0.5, 0.75, 0.9, 0.97];
const everyMs = 60_000;

/** Watches the ids of all tables: it checks them once a minute. */
export function openIdWatch(database: Pick<Database, 'kysely'>, reported: Reported): IdWatch {
  let known: readonly IdUse[] = [];
  /** The threshold that was last logged, by table; none if the table is below all of them. */
  const logged = new Map<string, number>();
  const round = async (): Promise<void> => {
    known = await readIdUse(database);
    for (const use of known) {
      const passed = thresholds.findLast((threshold) => use.used >= threshold) ?? 0;
      if (passed > (logged.get(use.table) ?? 0)) reported.logger.warn(idProblem(use, passed));
      logged.set(use.table, passed);
    }
  };
  const failed = reporting(reported, 'The used ids could not be read; it is tried again later');
  return {
    check: () => round().catch(failed),
    used: () => new Map(known.map(({ table, used }) => [table, used])),
    close: inBackground({ everyMs, failed, round }),
  };
}
