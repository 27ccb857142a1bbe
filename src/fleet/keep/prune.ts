import { inBackground } from '../../../db/engine/background.ts';
import type { Database } from '../../../db/engine/connect.ts';
import { pruneChanges } from '../../../db/fleet/prune_changes.ts';
import { type Reported, reporting } from '../../log/outages.ts';

/**
 * Deletes old rows of the change log from time to time. Every process does so; pruning more than once is harmless.
 *
 * @param keepMs changes are kept for one to two times this long; a process that could not refresh for longer loads everything
 *   afterwards
 * @returns a function that stops it, and resolves when its last statement has ended
 */
export function pruneFromTimeToTime(database: Database, reported: Reported, keepMs: number): () => Promise<void> {
  let oldest: string | undefined;
  return inBackground({
    everyMs: keepMs,
    failed: reporting(reported, 'The change log could not be pruned; it is tried again later'),
    round: async (stopping) => {
      oldest = await pruneChanges(database, oldest, () => stopping.aborted);
    },
  });
}
