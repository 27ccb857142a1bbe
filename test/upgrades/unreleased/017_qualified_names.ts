import { type Kysely, sql } from 'kysely';
import { qualifyNames } from '../../../db/schema/qualified_names.ts';

/**
 * The functions of triggers, and those that they call, name tables and each other with their schema (see qualified_names.ts). Rows that are
 * restored without their tables (`pg_dump --data-only`), or that come by logical replication, run triggers with an empty `search_path`.
 *
 * It only replaces functions, so it locks no table.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ readonly name: string }>`
    select distinct proname as name from pg_proc
    where pronamespace = quote_ident(current_schema())::regnamespace and proname ~ ${ours}`.execute(db);
  await qualifyNames(
    db,
    rows.map(({ name }) => name),
  );
}

/** The functions that migrations 002 to 016 made. */
const ours =
  '^(etag_.*|log_(allocations|provider_rows|provider_parts)_.*|log_names_changed|log_truncated|terms_.*|former_generations)$';
