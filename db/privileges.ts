import { sql } from 'kysely';
import type { Database } from './connect.ts';
import { onlyRow } from './only_row.ts';
import { hasSqlstate, sqlstate } from './sqlstate.ts';

/**
 * Runs what changes the schema. Since PostgreSQL 15 a role may make tables in schema public only where it owns the database.
 *
 * @throws Error with the statement that gives the role what it lacks; any other error as it is.
 */
export async function withPrivilegeRemedy<T>(database: Database, change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    if (!(error instanceof Error) || !hasSqlstate(error, sqlstate.insufficientPrivilege)) throw error;
    const { role, name } = await whoAndWhere(database);
    // Anything else is about tables that are there: those of an OpenStack Placement with another role.
    const remedy = /^permission denied for (schema|database)/.test(error.message)
      ? `Let it own the database, as a superuser: alter database ${name} owner to ${role};`
      : 'Set [placement_database] connection to the role that owns the tables.';
    throw new Error(`Role ${role} may not change the schema of database ${name}: ${error.message}. ${remedy}`, {
      cause: error,
    });
  }
}

/** Both as SQL writes them. */
const whoAndWhere = ({ kysely }: Database) =>
  onlyRow(
    kysely,
    sql<{
      readonly role: string;
      readonly name: string;
    }>`select quote_ident(current_user) as role, quote_ident(current_database()) as name`,
  );
