import { ConfigError } from '../config/config_error.ts';
import type { LoadedConfig } from '../config/load.ts';
import { describeDatabase } from './describe_database.ts';

/**
 * The warning if files configure the service, but not its database. The data is then in a folder relative to the
 * working directory of each command, so a deployment that has a database may find an empty one. For commands that open
 * the database.
 *
 * @throws ConfigError if the files have something that is probably meant to name the database
 */
export function databaseWarning({ files, settings, config, nearDatabase }: LoadedConfig): string | undefined {
  const deciding = settings.filter(
    ({ option }) => option.group === 'placement_database' && ['connection', 'embedded_path'].includes(option.name),
  );
  if (files.length === 0 || deciding.some(({ written }) => written !== undefined)) return undefined;
  const embedded = describeDatabase(config.placementDatabase);
  if (nearDatabase.length > 0) {
    const instead =
      'seems to name the database, but only [placement_database] connection does. Without it the service would use the ' +
      `${embedded}. Correct the name, or set [placement_database] embedded_path to use the embedded database.`;
    throw new ConfigError(nearDatabase.map((place) => `${place} ${instead}`));
  }
  return (
    `${files.join(', ')}: neither [placement_database] connection nor embedded_path is set, which leaves the ` +
    `${embedded}. Set connection to a PostgreSQL database, or embedded_path to this folder.`
  );
}
