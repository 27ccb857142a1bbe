import { existsSync } from 'node:fs';
import type { Database } from '../../db/engine/connect.ts';
import { failureKind, failureOf } from '../../db/engine/failures.ts';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { withUsageRemedy } from '../../db/schema/privileges.ts';
import { type Config, ConfigError } from '../config/config.ts';
import type { LoadedConfig } from '../config/load.ts';
import { type ConfigFlags, loadConfig, printWarnings } from '../start/config_flags.ts';
import { databaseWarning, describeDatabase, newDatabaseNotice, openConfiguredDatabase } from '../start/database.ts';
import { printError } from '../text/print.ts';
import { refuseUnwritable } from './upgrade_checks.ts';

type Opening = {
  /** Whether the warnings about the configuration are printed: not where they were before. */
  readonly warns?: boolean;
  /** Whether the command begins a new database, also in a folder where nothing is configured and the service was never started. */
  readonly begins?: boolean;
};

/**
 * Opens the database that the flags of a command name, and closes it after the callback. Warnings go to standard error.
 *
 * @throws ConfigError where there are files of configuration, and they name no database; or where there are none, no database is in this
 *   folder, and the command does not begin one
 */
export async function withConfiguredDatabase(
  flags: ConfigFlags,
  use: (database: Database, config: Config) => Promise<void>,
  { warns = true, begins = false }: Opening = {},
): Promise<void> {
  const loaded = loadConfig(flags);
  if (warns) printWarnings(loaded.warnings);
  // The service only warns of a missing database. A command would create an empty database in any folder, and report that all is well.
  const unnamed = databaseWarning(loaded) ?? (begins ? undefined : missingEmbedded(loaded));
  if (unnamed !== undefined) throw new ConfigError([unnamed]);
  const notice = begins ? undefined : newDatabaseNotice(loaded.config.placementDatabase);
  const database = await openConfiguredDatabase(loaded.config, { warn: (line) => printError(line) });
  if (notice !== undefined) printError(notice);
  try {
    await withUsageRemedy(database, () => use(database, loaded.config));
  } catch (error) {
    if (failureKind(error) !== 'unavailable') throw error;
    // The reason alone may be "read ECONNRESET".
    throw new Error(
      `The ${describeDatabase(loaded.config.placementDatabase)} does not serve any more: ${failureOf(error)}. ` +
        'Run the command again when it does: what was done before stays.',
      { cause: error },
    );
  } finally {
    await database.close();
  }
}

/** The problem where nothing is configured, and the service was never started in this folder, as in that of a cron job. */
function missingEmbedded({ settings, config: { placementDatabase } }: LoadedConfig): string | undefined {
  const isNamed = settings.some(({ option: { key }, written }) => key === 'embeddedPath' && written !== undefined);
  if (placementDatabase.connection !== undefined || isNamed || existsSync(placementDatabase.embeddedPath))
    return undefined;
  return (
    `No configuration names a database, and there is no ${describeDatabase(placementDatabase)}. Name the configuration of the ` +
    'service by --config-file, set OS_PLACEMENT_DATABASE__CONNECTION, or run the command in the folder where the service was started.'
  );
}

/**
 * The same with a database whose schema is not older than this release. An embedded one is migrated first, as it is when it is served.
 *
 * @throws Error where the schema is older, or there is none, or an import is unfinished
 */
export function withCurrentDatabase(
  flags: ConfigFlags,
  use: (database: Database, config: Config) => Promise<void>,
  opening?: Opening,
): Promise<void> {
  const useCurrent = async (database: Database, config: Config): Promise<void> => {
    if (database.engine === 'embedded') await migrateToLatest(database);
    await refuseUnwritable(database);
    await use(database, config);
  };
  return withConfiguredDatabase(flags, useCurrent, opening);
}
