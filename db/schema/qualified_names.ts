import { type QueryExecutorProvider, sql } from 'kysely';

/**
 * Replaces functions by versions in which every table, and every called function of `functions`, has its schema. So the functions do the
 * same whatever `search_path` the connection has: `pg_restore` and the subscriber of a logical replication have an empty one. A
 * `search_path` of the function itself would have the same effect, but takes time at each call.
 *
 * Tables are found behind `from`, `join`, `into` and `update`. A name that has its schema already stays.
 *
 * @param functions names of functions in the current schema
 */
export async function qualifyNames(db: QueryExecutorProvider, functions: readonly string[]): Promise<void> {
  const { rows: tables } = await sql<{ readonly name: string }>`
    select relname as name from pg_class where relkind = 'r' and relnamespace = quote_ident(current_schema())::regnamespace`.execute(
    db,
  );
  const table = new RegExp(`\\b(from|join|into|update) (${tables.map(({ name }) => name).join('|')})\\b`, 'g');
  const call = new RegExp(`(?<![.\\w])(${functions.join('|')})\\(`, 'g');
  const { rows } = await sql<{ readonly definition: string; readonly body: string; readonly schema: string }>`
    select pg_get_functiondef(oid) as definition, prosrc as body, quote_ident(current_schema()) as schema
    from pg_proc where pronamespace = quote_ident(current_schema())::regnamespace and proname = any(${functions}::text[])
    order by proname`.execute(db);
  for (const { definition, body, schema } of rows) {
    const qualified = body
      .replace(table, (_, word: string, name: string) => `${word} ${schema}.${name}`)
      .replace(call, (_, name: string) => `${schema}.${name}(`);
    if (qualified !== body) await sql.raw(definition.replace(body, () => qualified)).execute(db);
  }
}
