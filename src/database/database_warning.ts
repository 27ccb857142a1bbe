import type { LoadedConfig } from '../config/load.ts';
import { describeDatabase } from './describe_database.ts';

/**
 * Warns where files configure the service, but not where its data is: then it is in a folder that depends on where a command
 * runs, and a deployment that has a database finds an empty one. For those who open the database.
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
