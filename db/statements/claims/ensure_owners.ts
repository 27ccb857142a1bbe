import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import type { LockWait } from '../../engine/slow_lane.ts';
import { utcNow } from '../../engine/time.ts';

/**
 * Makes sure that these projects, users and consumer types exist. The names are sorted, so that two transactions cannot
 * deadlock.
 *
 * @param wait how long to wait for each lock. Without it, the time limit of a statement applies.
 * @throws `lockNotAvailable` if another transaction has inserted one of the names and did not end in time; then nothing
 *   was done.
 */
export async function ensureOwners(
  { transaction }: Pick<Database, 'transaction'>,
  names: { readonly projects: readonly string[]; readonly users: readonly string[]; readonly types: readonly string[] },
  wait?: LockWait,
): Promise<void> {
  const insert = (table: string, column: string, values: readonly string[]) =>
    sql`insert into ${sql.table(table)} (${sql.ref(column)}, created_at)
      select distinct value, ${utcNow} from unnest(${values}::text[]) as value order by value
      on conflict (${sql.ref(column)}) do nothing`;
  const statements = [
    insert('projects', 'external_id', names.projects),
    insert('users', 'external_id', names.users),
    insert('consumer_types', 'name', names.types),
  ];
  await transaction(statements, wait);
}
