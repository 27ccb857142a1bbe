import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { hasSqlstate, isLostRace, sqlstate } from '../sqlstate.ts';
import { utcNow } from '../utc_now.ts';

/** Ids from here on are custom classes; below it are the standard ones. Upstream's MIN_CUSTOM_RESOURCE_CLASS_ID. */
export const firstCustomClassId = 10_000;

/**
 * Creates a custom resource class with the next free id.
 *
 * @returns false where the name is taken.
 */
export async function createResourceClass({ kysely }: Database, name: string): Promise<boolean> {
  for (;;) {
    try {
      await sql`insert into resource_classes (id, name, created_at)
        select greatest(max(id) + 1, ${firstCustomClassId}::integer), ${name}::text, ${utcNow} from resource_classes`.execute(
        kysely,
      );
      return true;
    } catch (error) {
      if (!hasSqlstate(error, sqlstate.uniqueViolation)) throw error;
      const taken = await kysely
        .selectFrom('resource_classes')
        .select('id')
        .where('name', '=', name)
        .executeTakeFirst();
      if (taken !== undefined) return false;
      // Somebody else took the id for another name: the next one, then.
    }
  }
}

/**
 * @returns false where the class is gone.
 * @throws a unique violation where the name is taken.
 */
export async function renameResourceClass({ kysely }: Database, id: number, name: string): Promise<boolean> {
  const rename = kysely.updateTable('resource_classes').set({ name, updated_at: utcNow }).where('id', '=', id);
  for (;;) {
    try {
      return (await rename.executeTakeFirst()).numUpdatedRows > 0n;
    } catch (error) {
      // It also writes the entity tags of all that shows the name, which claims write too.
      if (!isLostRace(error)) throw error;
    }
  }
}

/** Deletes a class that has this name, and that no inventory has. The lock comes first, so that an inventory written before it is seen. */
export async function deleteResourceClass(
  { transaction }: Pick<Database, 'transaction'>,
  { id, name }: { readonly id: number; readonly name: string },
): Promise<'deleted' | 'gone' | 'in use'> {
  const lock = sql`select id from resource_classes where id = ${id} and name = ${name} for update`;
  const remove = sql`delete from resource_classes where id = ${id} and name = ${name}
    and not exists (select from inventories where resource_class_id = ${id}) returning id`;
  const [locked, removed] = await transaction([lock, remove]);
  if (locked.length === 0) return 'gone';
  return removed.length === 1 ? 'deleted' : 'in use';
}
