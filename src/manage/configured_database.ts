import type { Database } from '../../db/engine/connect.ts';
import { withUsageRemedy } from '../../db/schema/privileges.ts';
import type { Config } from '../config/config.ts';
import { type ConfigFlags, loadConfig, printWarnings } from '../start/command_line.ts';
import { databaseWarning, openConfiguredDatabase } from '../start/database.ts';
import { printError } from '../text/print.ts';

/**
 * Opens the database that the flags of a command name, and closes it after the callback. Warnings go to standard error.
 */
export async function withConfiguredDatabase(
  flags: ConfigFlags,
  use: (database: Database, config: Config) => Promise<void>,
): Promise<void> {
  const loaded = loadConfig(flags);
  printWarnings(loaded.warnings);
  printWarnings([databaseWarning(loaded)]);
  const database = await openConfiguredDatabase(loaded.config, { warn: (line) => printError(line) });
  try {
    await withUsageRemedy(database, () => use(database, loaded.config));
  } finally {
    await database.close();
  }
}
