import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { hasSqlstate, sqlstate } from '../../engine/failures.ts';
import { utcNow } from '../../engine/time.ts';
import { lockChangedName } from '../relied_locks.ts';

/** Creates a trait, unless it exists. @returns whether it is new. */
export async function createTrait({ write }: Pick<Database, 'write'>, name: string): Promise<boolean> {
  const insert = sql`insert into traits (name, created_at) values (${name}, ${utcNow})
    on conflict (name) do nothing returning id`;
  const [rows] = await write([insert]);
  return rows.length === 1;
}

/** Deletes a trait with this id and name, unless a provider has it, which the foreign key checks. */
export async function deleteTrait(
  { write }: Pick<Database, 'write'>,
  { id, name }: { readonly id: number; readonly name: string },
): Promise<'deleted' | 'gone' | 'in use'> {
  try {
    const lock = sql`select from traits where id = ${id} and name = ${name} for update`;
    const remove = sql`delete from traits where id = ${id} and name = ${name} returning id`;
    const [, , deleted] = await write([lock, lockChangedName('trait', id), remove]);
    return deleted.length > 0 ? 'deleted' : 'gone';
  } catch (error) {
    if (hasSqlstate(error, sqlstate.foreignKeyViolation)) return 'in use';
    throw error;
  }
}
