import { setTimeout as sleep } from 'node:timers/promises';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { failureOf } from '../../db/engine/failure_of.ts';
import type { OnStatement } from '../../db/engine/pool.ts';
import { reach } from '../../db/engine/reach.ts';
import { hasSqlstate, sqlstate } from '../../db/engine/sqlstate.ts';
import type { Config } from '../config/config.ts';
import { maskUrls } from '../config/database_url.ts';
import { namesIn } from './describe_database.ts';
import { isRefusedLogin } from './exit_code.ts';

/**
 * Opens the database that the configuration names: a PostgreSQL server or the embedded database. If the server cannot
 * be reached, it is tried again, as `max_retries` and `retry_interval` say.
 *
 * @param options.embeddedStopped as `stopped` of `EmbeddedSettings`
 * @param options.warn receives a message for each failed attempt
 * @param options.statementTimeoutMs 0, the default, means no limit: the statements of commands may take long
 * @throws Error with the remedy if the server cannot be reached, or if another process uses the embedded database
 */
export async function openConfiguredDatabase(
  config: Config,
  options: {
    readonly embeddedTemplate?: Blob;
    readonly warn?: (line: string) => void;
    readonly onStatement?: OnStatement | undefined;
    readonly statementTimeoutMs?: number;
    readonly embeddedStopped?: (error: Error) => void;
  } = {},
): Promise<Database> {
  const onStatement = options.onStatement === undefined ? {} : { onStatement: options.onStatement };
  const { connection, embeddedPath, maxPoolSize, poolTimeout, connectionRecycleTime, maxRetries, retryInterval } =
    config.placementDatabase;
  const { preparedStatements } = config.placementDatabase;
  if (connection === undefined) {
    const { embeddedTemplate: template, embeddedStopped: stopped, warn } = options;
    return openDatabase({
      embeddedPath,
      ...(template === undefined ? {} : { template }),
      ...(stopped === undefined ? {} : { stopped }),
      ...(warn === undefined ? {} : { warn }),
      ...onStatement,
    });
  }
  const database = await openDatabase({
    connection,
    maxPoolSize: maxPoolSize === 0 ? Number.MAX_SAFE_INTEGER : maxPoolSize,
    connectTimeoutMs: poolTimeout * 1000,
    maxLifetimeSeconds: Math.max(0, connectionRecycleTime),
    preparedStatements,
    statementTimeoutMs: options.statementTimeoutMs ?? 0,
    ...onStatement,
  });
  const problem = (reason: string) => `The database ${maskUrls(connection)} cannot be reached: ${reason}.`;
  try {
    await reach(database, maxRetries, async (reason, attempt) => {
      const of = maxRetries === -1 ? '' : ` of ${maxRetries}`;
      options.warn?.(`${problem(reason)} The next attempt${of && `, ${attempt}${of},`} is in ${retryInterval} s.`);
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
