import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { hasSqlstate, sqlstate } from '../engine/failures.ts';
import { onlyRow } from '../engine/only_row.ts';

/** Runs work; where the role lacks a privilege, the error becomes another one, with the remedy. */
async function withRemedy<T>(
  database: Database,
  work: () => Promise<T>,
  remedied: (message: string, found: Found) => string,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error) || !hasSqlstate(error, sqlstate.insufficientPrivilege)) throw error;
    throw new Error(remedied(error.message, await look(database)), { cause: error });
  }
}

/**
 * Runs a change of the schema. Since PostgreSQL 15 a role may create tables in schema public only if it owns the
 * database.
 *
 * @throws Error with the statement that grants the missing privilege; any other error as it is.
 */
export const withPrivilegeRemedy = <T>(database: Database, change: () => Promise<T>): Promise<T> =>
  withRemedy(database, change, (message, { role, name, hasTablesOfOthers }) => {
    // An OpenStack Placement uses another role, for example.
    const remedy = hasTablesOfOthers
      ? 'Set [placement_database] connection to the role that owns the tables.'
      : `Let it own the database, as a superuser: alter database ${name} owner to ${role};`;
    return `Role ${role} may not change the schema of database ${name}: ${message}. ${remedy}`;
  });

/**
 * Reads or writes what the service needs. A role may use the tables of another role only if that role grants it.
 *
 * @throws Error with role, database and the statement that grants the missing privilege; any other error as it is.
 */
export const withUsageRemedy = <T>(database: Database, use: () => Promise<T>): Promise<T> =>
  withRemedy(
    database,
    use,
    (message, { role, name, schema }) =>
      `Role ${role} may not use the tables of database ${name}: ${message}. Set [placement_database] connection to ` +
      `the role that owns the tables, or grant them, as that role: grant usage on schema ${schema} to ${role}; ` +
      `grant select, insert, update, delete on all tables in schema ${schema} to ${role}; ` +
      `grant usage on all sequences in schema ${schema} to ${role};`,
  );

/** What a remedy depends on. The message of the refusal does not tell it: PostgreSQL may write its messages in another language. */
type Found = {
  /** The names of the role, the database and the schema, quoted for SQL. A schema that the role may not use is not the current one. */
  readonly role: string;
  readonly name: string;
  readonly schema: string;
  /** Whether the tables are there, and belong to a role that this one is no member of. */
  readonly hasTablesOfOthers: boolean;
};

const look = ({ kysely }: Database) =>
  onlyRow(
    kysely,
    sql<Found>`select quote_ident(current_user) as role, quote_ident(current_database()) as name,
      quote_ident(coalesce(current_schema(), 'public')) as schema,
      exists (select from pg_class join pg_namespace n on n.oid = relnamespace where nspname = current_schema()
        and relname in ('resource_providers', 'kysely_migration', 'alembic_version')
        and not pg_has_role(relowner, 'usage')) as "hasTablesOfOthers"`,
  );
