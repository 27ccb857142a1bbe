import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { failureKind, repeatLostRaces } from '../../engine/failures.ts';
import { utcNow } from '../../engine/time.ts';
import { firstCustomClassId } from '../../schema/standard_resource_classes.ts';
import { lockChangedName } from '../relied_locks.ts';

/** The id above all other ids. If a program has used the highest integer as an id, the lowest free id. */
const nextClassId = sql`case when last < 2147483647 then greatest(last + 1, ${sql.lit(firstCustomClassId)})
  else (
    select min(id) from (
      select ${sql.lit(firstCustomClassId)} as id
      union all select id + 1 from resource_classes where id between ${sql.lit(firstCustomClassId)} and 2147483646
    ) as candidate where not exists (select from resource_classes c where c.id = candidate.id)
  ) end`;

/** With this advisory lock only one process at a time chooses an id. The lock ends with the transaction. */
const idLock = 1_020_000;

/** The names of all resource classes. */
export async function readClassNames({ kysely }: Pick<Database, 'kysely'>): Promise<readonly string[]> {
  const { rows } = await sql<{ readonly name: string }>`select name from resource_classes`.execute(kysely);
  return rows.map(({ name }) => name);
}

/**
 * Creates a custom resource class with the next free id.
 *
 * @returns `id taken` if another program, which does not know the lock, has taken the id for another name.
 */
export async function createResourceClass(
  { kysely, write }: Database,
  name: string,
): Promise<'created' | 'name taken' | 'id taken'> {
  try {
    await write([
      sql`select pg_advisory_xact_lock(${sql.lit(idLock)})`,
      sql`insert into resource_classes (id, name, created_at)
        select ${nextClassId}, ${name}::text, ${utcNow} from (select max(id) as last from resource_classes) as ids`,
    ]);
    return 'created';
  } catch (error) {
    if (failureKind(error) !== 'taken') throw error;
    const taken = await kysely.selectFrom('resource_classes').select('id').where('name', '=', name).executeTakeFirst();
    return taken === undefined ? 'id taken' : 'name taken';
  }
}

/**
 * Renames a class, which is identified by its id and its name: the id of a deleted class may be used again.
 *
 * @returns `changed` if there is no class with this id and this name.
 */
export async function renameResourceClass(
  { write }: Pick<Database, 'write'>,
  seen: { readonly id: number; readonly name: string },
  name: string,
): Promise<'renamed' | 'changed' | 'name taken'> {
  const lock = sql`select from resource_classes where id = ${seen.id} and name = ${seen.name} for update`;
  const rename = sql`update resource_classes set name = ${name}, updated_at = ${utcNow}
    where id = ${seen.id} and name = ${seen.name} returning id`;
  try {
    // The triggers also write the entity tags of everything that contains the name, as claims do, and may deadlock with them.
    const [, , renamed] = await repeatLostRaces(() => write([lock, lockChangedName('class', seen.id), rename]));
    return renamed.length > 0 ? 'renamed' : 'changed';
  } catch (error) {
    if (failureKind(error) === 'taken') return 'name taken';
    throw error;
  }
}

/**
 * Deletes a class with this id and name, unless an inventory uses it. It locks the class first, so that it sees an
 * inventory that was written before the lock.
 */
export async function deleteResourceClass(
  { write }: Pick<Database, 'write'>,
  { id, name }: { readonly id: number; readonly name: string },
): Promise<'deleted' | 'gone' | 'in use'> {
  const lock = sql`select id from resource_classes where id = ${id} and name = ${name} for update`;
  const remove = sql`delete from resource_classes where id = ${id} and name = ${name}
    and not exists (select from inventories where resource_class_id = ${id}) returning id`;
  const [locked, , removed] = await write([lock, lockChangedName('class', id), remove]);
  if (locked.length === 0) return 'gone';
  return removed.length === 1 ? 'deleted' : 'in use';
}
