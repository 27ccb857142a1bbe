import path from 'node:path';
import type { Config } from '../config/config.ts';
import { splitDatabaseUrl } from '../config/database_url.ts';

/**
 * Which database a configuration means, for people and without a password: "PostgreSQL database placement at
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
  const reading = splitDatabaseUrl(connection, '', ['postgresql']);
  // Its own form is what the configuration has made of every URL.
  if ('problem' in reading) return 'PostgreSQL database';
  const { user, database, ...written } = reading.value;
  const query = new URLSearchParams(written.query);
  const host = query.get('host') || written.host || env.PGHOST || 'localhost';
  const port = query.get('port') || written.port || env.PGPORT || 5432;
  const name = decodeURI(database ?? '') || env.PGDATABASE || user || env.PGUSER || env.USER || '';
  return `PostgreSQL database ${name} at ${host.startsWith('/') ? host : `${host}:${port}`}`;
}
