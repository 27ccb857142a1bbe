import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { hasSqlstate, isReadOnly, sqlstate } from '../engine/failures.ts';
import { onlyRow } from '../engine/only_row.ts';

/** Runs work; where the role lacks a privilege, the error becomes another one, with the remedy. */
async function withRemedy<T>(
  database: Database,
  work: () => Promise<T>,
  remedied: (message: string, role: RoleInDatabase) => string,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error) || !hasSqlstate(error, sqlstate.insufficientPrivilege)) throw error;
    throw new Error(remedied(error.message, await readRole(database)), { cause: error });
  }
}

/**
 * Runs a change of the schema. In a database that PostgreSQL 15 or newer has made, a role may create tables in schema public only if it owns
 * the database. In older ones everyone may, unless that was revoked, and the schema is not of the owner of the database.
 *
 * @throws Error with the statement that grants the missing privilege; any other error as it is.
 */
export const withPrivilegeRemedy = <T>(database: Database, change: () => Promise<T>): Promise<T> =>
  withRemedy(database, change, (message, { role, name, schema, isOfDatabaseOwner, othersOwn }) => {
    // An OpenStack Placement uses another role, for example. A handover of tables to another role may leave out the functions.
    const remedy = othersOwn
      ? `Set [placement_database] connection to the role that owns the ${othersOwn}.`
      : isOfDatabaseOwner
        ? `Let it own the database, as a superuser: alter database ${name} owner to ${role};`
        : `Let it create tables there, in this database as a superuser: grant create on schema ${schema} to ${role};`;
    return `Role ${role} may not change the schema of database ${name}: ${message}. ${remedy}`;
  });

/**
 * Reads or writes what the service needs. A role may use the tables of another role only if that role grants it, and a standby takes no
 * writes.
 *
 * @throws Error with role, database and the statement that grants the missing privilege, or with what to do about a database that is
 *   read-only; any other error as it is.
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
  ).catch((error: unknown) => {
    throw withReadOnlyRemedy(error);
  });

/** The error of a database that takes no writes, with what to do; any other error as it is. */
export const withReadOnlyRemedy = (error: unknown): unknown =>
  isReadOnly(error) ? new Error(readOnlyProblem, { cause: error }) : error;

const readOnlyProblem =
  'The database is read-only: it is a standby, or default_transaction_read_only is on for the server, the database or the role. Name the ' +
  'primary in [placement_database] connection, or switch it off.';

/** What a remedy depends on. The message of the refusal does not tell it: PostgreSQL may write its messages in another language. */
type RoleInDatabase = {
  /** The names of the role, the database and the schema, quoted for SQL. A schema that the role may not use is not the current one. */
  readonly role: string;
  readonly name: string;
  readonly schema: string;
  /** Whether each owner of the database owns the schema too (role pg_database_owner). */
  readonly isOfDatabaseOwner: boolean;
  /** The objects of the service that belong to a role of which the current role is no member; null if there are none. */
  readonly othersOwn: 'tables' | 'functions' | null;
};

const readRole = ({ kysely }: Database) =>
  onlyRow(
    kysely,
    sql<RoleInDatabase>`select quote_ident(current_user) as role, quote_ident(current_database()) as name,
      quote_ident(coalesce(current_schema(), 'public')) as schema,
      exists (select from pg_namespace where nspname = coalesce(current_schema(), 'public')
        and nspowner = 'pg_database_owner'::regrole) as "isOfDatabaseOwner",
      case when exists (select from pg_class join pg_namespace n on n.oid = relnamespace where nspname = current_schema()
          and relname in ('resource_providers', 'kysely_migration', 'alembic_version')
          and not pg_has_role(relowner, 'usage')) then 'tables'
        when exists (select from pg_proc join pg_namespace n on n.oid = pronamespace where nspname = current_schema()
          and proname in ('etag_consumers', 'etag_parts') and not pg_has_role(proowner, 'usage')) then 'functions' end as "othersOwn"`,
  );
