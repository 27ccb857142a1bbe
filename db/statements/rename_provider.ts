import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { utcNow } from '../utc_now.ts';
import { isAsSeen, type SeenProvider } from './seen_provider.ts';

/**
 * Gives a provider a name; one that it has already changes nothing, not even updated_at.
 *
 * @param seen what the provider must still be
 * @returns false where it is not.
 * @throws a unique violation where the name is taken.
 */
export async function renameProvider(
  { kysely }: Database,
  id: number,
  name: string,
  seen?: SeenProvider,
): Promise<boolean> {
  if (seen === undefined) {
    await sql`update resource_providers set name = ${name}, updated_at = ${utcNow}
      where id = ${id} and name is distinct from ${name}`.execute(kysely);
    return true;
  }
  const { rows } = await sql`
    with seen as materialized (
      select p.id from resource_providers p where p.id = ${id} and ${isAsSeen(seen)} for no key update
    ), renamed as (
      update resource_providers p set name = ${name}, updated_at = ${utcNow} from seen
      where p.id = seen.id and p.name is distinct from ${name}
    )
    select id from seen`.execute(kysely);
  return rows.length === 1;
}
