import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { utcNow } from '../utc_now.ts';

/**
 * Makes sure that these projects, users and consumer types exist. Sorted, so that two writers cannot wait for each other in
 * a circle.
 */
export async function ensureOwners(
  { transaction }: Pick<Database, 'transaction'>,
  names: { readonly projects: readonly string[]; readonly users: readonly string[]; readonly types: readonly string[] },
): Promise<void> {
  const insert = (table: string, column: string, values: readonly string[]) =>
    sql`insert into ${sql.table(table)} (${sql.ref(column)}, created_at)
      select distinct value, ${utcNow} from unnest(${values}::text[]) as value order by value on conflict do nothing`;
  await transaction([
    insert('projects', 'external_id', names.projects),
    insert('users', 'external_id', names.users),
    insert('consumer_types', 'name', names.types),
  ]);
}
