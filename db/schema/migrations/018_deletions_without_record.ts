import { type Kysely, sql } from 'kysely';
import { qualifyNames } from '../qualified_names.ts';

/**
 * A deletion of allocations of a consumer without a record takes the advisory lock of the consumer, as an insertion does. Without the
 * lock, what was held since before the history was switched on was counted in the record that an insertion began while the deletion had
 * not committed yet.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ readonly definition: string }>`
    select pg_get_functiondef(oid) as definition from pg_proc
    where pronamespace = quote_ident(current_schema())::regnamespace and proname = 'record_allocations_deleted'`.execute(
    db,
  );
  for (const { definition } of rows) {
    await sql.raw(definition.replace(/\belsif (?=not exists)/, (word) => `${word}${haveRecords} and `)).execute(db);
  }
  await qualifyNames(db, ['record_allocations_deleted']);
}

const haveRecords = '(select count(*) from consumers where uuid = any(uuids)) = cardinality(uuids)';
