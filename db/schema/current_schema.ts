import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { onlyRow } from '../engine/only_row.ts';

/**
 * The schema in which the tables are made: the first one of `search_path` that exists. Several deployments may share a database, each in a
 * schema of its own.
 *
 * @throws Error with the remedy if no such schema exists, or if `search_path` also leads to tables in another schema, even behind this one:
 *   where a table of this schema is still to be made, statements would find the table of the other schema.
 */
export async function readCurrentSchema({ kysely }: Pick<Database, 'kysely'>): Promise<string> {
  const { schema, other, path, role } = await onlyRow(
    kysely,
    sql<{ schema: string | null; other: string | null; path: string; role: string }>`
      select current_schema()::text as schema, current_setting('search_path') as path, quote_ident(current_user) as role,
        (select min(quote_ident(nspname)) from pg_class c join pg_namespace n on n.oid = relnamespace
          where relname in ('resource_providers', 'kysely_migration') and nspname = any(current_schemas(false))
            and nspname <> current_schema()) as other`,
  );
  if (schema === null) {
    throw new Error(
      `None of the schemas in the search_path of role ${role} (${path}) exists, or the role may not use them. Create one, such as: ` +
        `create schema placement authorization ${role}; and set it: alter role ${role} set search_path = placement;`,
    );
  }
  if (other !== null) {
    throw new Error(
      `The search_path of role ${role} (${path}) leads to the tables of a Placement in schema ${other}, but new tables would be made in ` +
        `schema ${schema}. Nothing was changed. Name one schema only: alter role ${role} set search_path = ${other}; to use those ` +
        `tables, or ${schema} for a deployment of its own.`,
    );
  }
  return schema;
}
