import { sql } from 'kysely';
import type { Database } from '../../../db/engine/connect.ts';
import { standardResourceClasses } from '../../../db/schema/standard_resource_classes.ts';
import { standardTraits } from '../../../db/schema/standard_traits.ts';
import { type CopiedTable, copiedTables } from './copied_tables.ts';

/** A connection or transaction of the database that receives the import. */
export type Target = Pick<Database, 'kysely'>;

/** Runs `use` in one transaction. */
export const inTransaction = <T>({ kysely }: Target, use: (target: Target) => Promise<T>): Promise<T> =>
  kysely.transaction().execute((transaction) => use({ kysely: transaction }));

const allTables = sql.join(copiedTables.map(({ name }) => sql.table(name)));

/** Locks the tables against all other clients until the transaction ends. */
export async function lockTables({ kysely }: Target): Promise<void> {
  await sql`lock table ${allTables} in access exclusive mode`.execute(kysely);
}

/** Removes all rows, also the standard traits and classes: the source has these under other ids. */
export async function clearTables({ kysely }: Target): Promise<void> {
  await sql`truncate ${allTables}`.execute(kysely);
}

/**
 * The content of the target, for messages: `3 resource_providers`. Standard traits and resource classes do not count.
 */
export async function readContent({ kysely }: Target): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`
    select table_name as name from information_schema.tables where table_schema = current_schema()`.execute(kysely);
  const content: string[] = [];
  for (const { name } of copiedTables.filter((table) => rows.some((row) => row.name === table.name))) {
    const standard = name === 'traits' ? standardTraits : name === 'resource_classes' ? standardResourceClasses : [];
    const where = standard.length === 0 ? sql`` : sql`where name <> all (${standard}::text[])`;
    const found = await sql<{ count: number }>`
      select count(*)::integer as count from ${sql.table(name)} ${where}`.execute(kysely);
    const count = found.rows[0]?.count ?? 0;
    if (count > 0) content.push(`${count} ${name}`);
  }
  return content;
}

/**
 * Writes rows of a table without the triggers that log changes and make entity tags, because the triggers take most of
 * the time. At the end `logChange` logs all changes as one, and the online data migration backfill_etags makes the
 * tags.
 *
 * @param use runs within the transaction, which locks the table against other writes
 */
export async function withoutTriggers(
  { kysely }: Target,
  { name }: CopiedTable,
  use: () => Promise<void>,
): Promise<void> {
  await sql`alter table ${sql.table(name)} disable trigger user`.execute(kysely);
  await use();
  await sql`alter table ${sql.table(name)} enable trigger user`.execute(kysely);
}

/**
 * Logs one change that makes every process load all data again, and every running claim check its inventories again.
 */
export async function logChange({ kysely }: Target): Promise<void> {
  await sql`insert into inventory_changes (provider_id) values (null)`.execute(kysely);
  await sql`insert into provider_changes (provider_id, whole) values (null, false)`.execute(kysely);
}

/**
 * Providers can be written in any order within the transaction, because a parent may have a higher id than its child.
 */
export async function withLooseLinks({ kysely }: Target, use: () => Promise<void>): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select conname as name from pg_constraint where contype = 'f' and conrelid = 'resource_providers'::regclass
      and confrelid = conrelid`.execute(kysely);
  const alterAll = async (how: string): Promise<void> => {
    for (const { name } of rows) {
      await sql`alter table resource_providers alter constraint ${sql.id(name)} ${sql.raw(how)}`.execute(kysely);
    }
  };
  await alterAll('deferrable initially deferred');
  await use();
  await sql`set constraints all immediate`.execute(kysely);
  await alterAll('not deferrable');
}
