import type { OnlineMigration, Progress } from '../../db/online/online_migration.ts';
import { runBatch } from '../../db/online/run.ts';
import { messageOf } from '../message_of.ts';
import { centredTable } from './boxed_table.ts';

/** Some 20 ms of work, during which requests may wait for its rows; batches of upstream's 50 take two to three times as long in all. */
const batchSize = 500;

/** What `--max-count` says; undefined where it is no integer of 1 or more. */
export function readMaxCount(text: string): number | undefined {
  const count = /^\s*\+?\d+\s*$/.test(text) ? Number(text) : 0;
  return count >= 1 ? count : undefined;
}

/**
 * Runs the online data migrations and tells what they do, in the words and with the exit codes of upstream's command.
 *
 * @param maxCount one batch of so many rows; undefined for batches of 500 until nothing is left to do
 * @returns 0 where no (more) can be done, 1 where `maxCount` was given and rows were migrated, 2 where migrations failed
 *   and no other did anything in the last batch.
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
      if ('error' in part) print(`Error attempting to run ${part.name}: ${messageOf(part.error)}`);
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
