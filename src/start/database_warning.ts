import type { LoadedConfig } from '../config/load.ts';
import { describeDatabase } from './describe_database.ts';

/**
 * The warning if files configure the service, but not its database. The data is then in a folder relative to the
 * working directory of each command, so a deployment that has a database may find an empty one. For commands that open
 * the database.
 */
export function databaseWarning({ files, settings, config }: LoadedConfig): string | undefined {
  const deciding = settings.filter(
    ({ option }) => option.group === 'placement_database' && ['connection', 'embedded_path'].includes(option.name),
  );
  if (files.length === 0 || deciding.some(({ written }) => written !== undefined)) return undefined;
  return (
    `${files.join(', ')}: neither [placement_database] connection nor embedded_path is set, which leaves the ` +
    `${describeDatabase(config.placementDatabase)}. Set connection to a PostgreSQL database, or embedded_path to this folder.`
  );
}
