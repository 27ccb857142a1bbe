import { type Kysely, sql } from 'kysely';
import { lockTogether } from '../brief_locks.ts';

/**
 * Tables without a primary key get a replica identity: without one PostgreSQL refuses each UPDATE and DELETE of a table that is published, as
 * by `create publication ... for all tables`, which programs that capture changes make. Nothing more is written as long as `wal_level` is not
 * `logical`.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class where oid = any(array(select to_regclass(name) from unnest(${tables}::text[]) as name))
      and relreplident <> 'f' order by relname collate "C"`.execute(db);
  const without = rows.map(({ name }) => name);
  if (without.length === 0) return;
  await lockTogether(db, without, 'access exclusive');
  for (const table of without) await sql`alter table ${sql.table(table)} replica identity full`.execute(db);
}

const tables = [
  'doubtful_usages',
  'inventory_changes',
  'open_usage_records',
  'project_usages',
  'provider_changes',
  'provider_changes_horizon',
  'usage_counting',
  'usage_history',
];
