import type { Database } from '../engine/connect.ts';
import { backfillEtags } from './backfill_etags.ts';
import { backfillServiceUuids } from './backfill_service_uuids.ts';
import { createIncompleteConsumers, type IncompleteOwner } from './create_incomplete_consumers.ts';
import type { OnlineMigration, Progress } from './online_migration.ts';
import { setRootProviderIds } from './set_root_provider_ids.ts';

/** All online data migrations, in the order in which they run: upstream's, then ours. */
export const onlineMigrations = (database: Database, incomplete: IncompleteOwner): readonly OnlineMigration[] => [
  setRootProviderIds(database),
  createIncompleteConsumers(database, incomplete),
  backfillServiceUuids(database),
  backfillEtags(database),
];

/** What one migration did in a batch; `error` is set if it failed. */
export type BatchPart = Progress & { readonly name: string; readonly error?: unknown };

/**
 * Runs one batch over all migrations, which share `maxCount`. When it is used up, the remaining migrations do not run.
 * A migration that fails does not stop the other migrations.
 */
export async function runBatch(
  migrations: readonly OnlineMigration[],
  maxCount: number,
): Promise<readonly BatchPart[]> {
  const parts: BatchPart[] = [];
  let left = maxCount;
  for (const { name, runBatch } of migrations) {
    if (left <= 0) break;
    try {
      const progress = await runBatch(left);
      parts.push({ name, ...progress });
      left -= progress.done;
    } catch (error) {
      parts.push({ name, found: 0, done: 0, error });
    }
  }
  return parts;
}
