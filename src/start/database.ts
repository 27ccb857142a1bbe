import { existsSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import type { OnStatement } from '../../db/engine/connection.ts';
import type { EmbeddedOrigin } from '../../db/engine/embedded.ts';
import { failureOf, hasSqlstate, isRefusedLogin, isTlsRefused, sqlstate } from '../../db/engine/failures.ts';
import { hostsOf } from '../../db/engine/host_list.ts';
import { nameOfHost } from '../../db/engine/hosts.ts';
import { reach } from '../../db/engine/server_state.ts';
import { olderSchema, pendingMigrations } from '../../db/schema/executed_migrations.ts';
import { raiseSequences } from '../../db/schema/id_sequences.ts';
import { migrateToLatest } from '../../db/schema/migrate.ts';
import { withUsageRemedy } from '../../db/schema/privileges.ts';
import { syncStandardNames } from '../../db/schema/sync_standard_names.ts';
import { isImportUnfinished, unfinishedImportProblem } from '../../db/schema/unfinished_import.ts';
import { refuseUnwatchedTables } from '../../db/schema/watched_tables.ts';
import { type Config, ConfigError } from '../config/config.ts';
import { maskUrls, splitDatabaseUrl } from '../config/database_url.ts';
import type { LoadedConfig } from '../config/load.ts';

/**
 * Opens the database that the configuration names: a PostgreSQL server or the embedded database. If the server cannot
 * be reached, the connection is retried, as `max_retries` and `retry_interval` say.
 *
 * @param options.embeddedStopped as `stopped` of `EmbeddedSettings`
 * @param options.warn receives a message for each failed attempt
 * @param options.statementTimeoutMs 0, the default, means no limit: the statements of commands may take long
 * @throws Error with the remedy if the server cannot be reached, or if another process uses the embedded database
 */
export async function openConfiguredDatabase(
  config: Config,
  options: {
    readonly embedded?: EmbeddedOrigin | undefined;
    readonly warn: (line: string) => void;
    readonly onStatement?: OnStatement | undefined;
    readonly onRefused?: (error: unknown) => void;
    readonly statementTimeoutMs?: number;
    readonly embeddedStopped?: ((error: Error) => void) | undefined;
  },
): Promise<Database> {
  const { embedded, embeddedStopped: stopped, warn, onStatement, onRefused, statementTimeoutMs = 0 } = options;
  const { connection, embeddedPath, maxPoolSize, poolTimeout, connectionRecycleTime, maxRetries, retryInterval } =
    config.placementDatabase;
  const { preparedStatements } = config.placementDatabase;
  if (connection === undefined) return openDatabase({ embeddedPath, ...embedded, stopped, warn, onStatement });
  const database = await openDatabase({
    connection,
    maxPoolSize: maxPoolSize === 0 ? Number.MAX_SAFE_INTEGER : maxPoolSize,
    connectTimeoutMs: poolTimeout * 1000,
    maxLifetimeSeconds: Math.max(0, connectionRecycleTime),
    preparedStatements,
    statementTimeoutMs,
    onRefused,
    onStatement,
  });
  const problem = (reason: string) => `The database ${maskUrls(connection)} cannot be reached: ${reason}.`;
  try {
    await reach(database, maxRetries, async (reason, attempt) => {
      const of = maxRetries === -1 ? '' : ` of ${maxRetries}`;
      warn(`${problem(reason)} The next attempt${of && `, ${attempt}${of},`} is in ${retryInterval} s.`);
      await sleep(retryInterval * 1000);
    });
    return database;
  } catch (error) {
    await database.close();
    throw new Error(`${problem(failureOf(error))} ${remedyOf(error, connection)}`, { cause: error });
  }
}

const option = '[placement_database] connection (or DATABASE_URL)';

/** What to do. A server that refuses the role, or lacks the database, is already running. */
function remedyOf(error: unknown, connection: string): string {
  const names = namesIn(connection);
  const [role, database] = [quoted(names.role), quoted(names.database)];
  const reason = failureOf(error);
  if (isTlsRefused(error))
    return (
      `The server answers, and TLS fails. Where its certificate is not trusted: in ${option} use the name that the certificate has, and ` +
      'name its authority by sslrootcert=FILE. With sslmode=require it is not verified.'
    );
  if (reason.includes('does not support SSL'))
    return `The server answers: set its option ssl, or leave sslmode out of ${option}.`;
  if (reason.endsWith(', no encryption'))
    return (
      'The server answers: let pg_hba.conf allow the role or, where it wants TLS, add sslmode=require or ' +
      `sslmode=verify-full to ${option}.`
    );
  if (isRefusedLogin(error))
    return `The server answers: correct user and password in ${option}, or let pg_hba.conf allow them.`;
  if (hasSqlstate(error, sqlstate.unknownDatabase))
    return (
      `The server answers: correct ${option}, or create the database, as a superuser: create database ${database} ` +
      `owner ${role} encoding 'UTF8' lc_collate 'C' lc_ctype 'C' template template0;`
    );
  if (hasSqlstate(error, sqlstate.insufficientPrivilege))
    return `The server answers: correct ${option}, or let the role connect, as a superuser: grant connect on database ${database} to ${role};`;
  return `Start the server, or correct ${option}.`;
}

/** A name as SQL has it: in quotes where it needs them. */
const quoted = (name: string): string => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

/**
 * Makes sure that the schema is up to date, that the standard traits and classes exist, and that new rows get free ids.
 * The schema is migrated if the configuration says so, and always on the embedded database.
 *
 * @throws Error with the remedy if the schema is missing or old and may not be migrated, if it has lost triggers, if an
 *   import is unfinished, or if the database role may not use the tables or raise the ids
 */
export function prepareDatabase(database: Database, options: { readonly syncOnStartup: boolean }): Promise<void> {
  return withUsageRemedy(database, () => prepare(database, options));
}

async function prepare(database: Database, { syncOnStartup }: { readonly syncOnStartup: boolean }): Promise<void> {
  if (database.engine === 'embedded' || syncOnStartup) await migrateToLatest(database);
  const pending = await pendingMigrations(database);
  if (pending.length > 0) throw new Error(olderSchema(pending));
  await refuseUnwatchedTables(database);
  if (await isImportUnfinished(database)) throw new Error(unfinishedImportProblem);
  await raiseSequences(database);
  await syncStandardNames(database);
}

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

/**
 * What to say after an embedded database was opened that is not there yet: with a mistake in `embedded_path` the data seems to be lost.
 */
export function newDatabaseNotice(settings: Config['placementDatabase']): string | undefined {
  const { connection, embeddedPath } = settings;
  if (connection !== undefined || embeddedPath.startsWith('memory://')) return undefined;
  if (existsSync(path.join(embeddedPath, 'postgresql', 'PG_VERSION'))) return undefined;
  return `The ${describeDatabase(settings)} is new and empty: there was none.`;
}

/** The role and the database that the URL of a connection names, by libpq's defaults where it names none. */
function namesIn(
  connection: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): { readonly role: string; readonly database: string } {
  const reading = splitDatabaseUrl(connection, '', ['postgresql']);
  // `load` has turned every URL into this form, so it can be read.
  const { user, database } = 'problem' in reading ? {} : reading.value;
  const role = user || env.PGUSER || env.USER || '';
  return { role, database: decodeURI(database ?? '') || env.PGDATABASE || role };
}

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
    throw new ConfigError(nearDatabase.map((option) => `${option} ${instead}`));
  }
  return (
    `${files.join(', ')}: neither [placement_database] connection nor embedded_path is set, which leaves the ` +
    `${embedded}. Set connection to a PostgreSQL database, or embedded_path to this folder.`
  );
}
