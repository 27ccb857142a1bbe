import type { OnlineMigration, Progress } from '../../db/online/online_migration.ts';
import { runBatch } from '../../db/online/run.ts';
import { withReadOnlyRemedy } from '../../db/schema/privileges.ts';
import { messageOf } from '../text/print.ts';
import { centredTable } from './upgrade_report.ts';

/**
 * A batch of this size takes about 20 ms. During that time requests may wait for locks on its rows. With upstream's
 * size of 50, all batches together take two to three times as long.
 */
const batchSize = 500;

/** The value of `--max-count`; undefined if it is not an integer of at least 1. */
export function readMaxCount(text: string): number | undefined {
  const count = /^\s*\+?\d+\s*$/.test(text) ? Number(text) : 0;
  return count >= 1 ? count : undefined;
}

/**
 * Runs the online data migrations and prints their results, with the messages and exit codes of upstream's command.
 *
 * @param maxCount run one batch of this many rows; undefined: run batches of 500 until no rows are left
 * @returns 0 if no rows are left, 1 if `maxCount` was given and rows were migrated, 2 if migrations failed and no other
 *   migration changed rows in the last batch
 */
export async function runOnlineDataMigrations(
  migrations: readonly OnlineMigration[],
  maxCount: number | undefined,
  print: (line: string) => void,
): Promise<0 | 1 | 2> {
  if (maxCount === undefined) print(`Running batches of ${batchSize} until complete`);
  const totals = new Map<string, Progress>();
  let done = 0;
  let failed = false;
  do {
    const parts = await runBatch(migrations, maxCount ?? batchSize);
    for (const part of parts) {
      if ('error' in part) print(`Error attempting to run ${part.name}: ${messageOf(withReadOnlyRemedy(part.error))}`);
      if (part.found > 0) print(`${part.found} rows matched query ${part.name}, ${part.done} migrated`);
      const before = totals.get(part.name) ?? { found: 0, done: 0 };
      totals.set(part.name, { found: before.found + part.found, done: before.done + part.done });
    }
    done = parts.reduce((sum, part) => sum + part.done, 0);
    failed = parts.some((part) => 'error' in part);
  } while (maxCount === undefined && done > 0);

  const rows = [...totals].map(([name, progress]) => [name, String(progress.found), String(progress.done)]);
  print(centredTable(['Migration', 'Total Found', 'Completed'], rows));
  if (failed && !(maxCount !== undefined && done > 0)) {
    print('Some migrations failed unexpectedly. The lines above say why.');
    return 2;
  }
  return done > 0 ? 1 : 0;
}
