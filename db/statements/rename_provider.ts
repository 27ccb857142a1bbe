import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { utcNow } from '../utc_now.ts';

/**
 * Gives a provider a name; one that it has already changes nothing, not even updated_at.
 *
 * @throws a unique violation where the name is taken.
 */
export async function renameProvider({ kysely }: Database, id: number, name: string): Promise<void> {
  await sql`update resource_providers set name = ${name}, updated_at = ${utcNow}
    where id = ${id} and name is distinct from ${name}`.execute(kysely);
}
