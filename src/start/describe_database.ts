import path from 'node:path';
import { hostsOf } from '../../db/engine/hosts.ts';
import { nameOfHost } from '../../db/engine/hosts_pool.ts';
import type { Config } from '../config/config.ts';
import { splitDatabaseUrl } from '../config/database_url.ts';

/**
 * Names the database of a configuration for messages, without a password: "PostgreSQL database placement at
 * db.example.com:5432" or "embedded database in /var/lib/placement/placement-data".
 *
 * @param env the defaults of libpq, PGHOST and the like
 */
export function describeDatabase(
  { connection, embeddedPath }: Pick<Config['placementDatabase'], 'connection' | 'embeddedPath'>,
  env: Readonly<Record<string, string | undefined>> = process.env,
): string {
  if (connection === undefined) {
    const where = embeddedPath.startsWith('memory://') ? 'memory' : path.resolve(embeddedPath);
    return `embedded database in ${where}`;
  }
  const hosts = hostsOf(connection).hosts.map((host) => nameOfHost(host, env));
  return `PostgreSQL database ${namesIn(connection, env).database} at ${hosts.join(', ')}`;
}

/** The role and the database that the URL of a connection names, by libpq's defaults where it names none. */
export function namesIn(
  connection: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): { readonly role: string; readonly database: string } {
  const reading = splitDatabaseUrl(connection, '', ['postgresql']);
  // `load` has turned every URL into this form, so it can be read.
  const { user, database } = 'problem' in reading ? {} : reading.value;
  const role = user || env.PGUSER || env.USER || '';
  return { role, database: decodeURI(database ?? '') || env.PGDATABASE || role };
}
