import type { Database } from '../../db/connect.ts';
import type { Config } from '../config/config.ts';
import { databaseWarning } from '../database/database_warning.ts';
import { openConfiguredDatabase } from '../database/open_database.ts';
import { type ConfigFlags, loadConfig, printWarnings } from '../process/command_line.ts';

/** Opens the database that the flags of a command lead to, and closes it behind the call back. Warnings go to standard error. */
export async function withConfiguredDatabase(
  flags: ConfigFlags,
  use: (database: Database, config: Config) => Promise<void>,
): Promise<void> {
  const loaded = loadConfig(flags);
  printWarnings([...loaded.warnings, databaseWarning(loaded)]);
  const database = await openConfiguredDatabase(loaded.config, { warn: (line) => console.error(line) });
  try {
    await use(database, loaded.config);
  } finally {
    await database.close();
  }
}
