import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { hasSqlstate, sqlstate } from '../sqlstate.ts';
import { utcNow } from '../utc_now.ts';

/** Creates a trait, unless it exists. @returns whether it is new. */
export async function createTrait({ kysely }: Database, name: string): Promise<boolean> {
  const { rows } = await sql`insert into traits (name, created_at) values (${name}, ${utcNow})
    on conflict (name) do nothing returning id`.execute(kysely);
  return rows.length === 1;
}

/** Deletes a trait that has this name, and that no provider has: the foreign key says so. */
export async function deleteTrait(
  { kysely }: Database,
  { id, name }: { readonly id: number; readonly name: string },
): Promise<'deleted' | 'gone' | 'in use'> {
  try {
    const { numDeletedRows } = await kysely
      .deleteFrom('traits')
      .where('id', '=', id)
      .where('name', '=', name)
      .executeTakeFirst();
    return numDeletedRows > 0n ? 'deleted' : 'gone';
  } catch (error) {
    if (hasSqlstate(error, sqlstate.foreignKeyViolation)) return 'in use';
    throw error;
  }
}
