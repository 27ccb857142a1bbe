import { type Kysely, sql } from 'kysely';
import type { Tables } from '../../tables.ts';
import { freeProviderId } from '../providers/create_providers.ts';

/** A provider that exists and has the UUID or the name of a provider to insert, or the UUID of its parent. */
export type PresentProvider = {
  readonly id: number;
  readonly uuid: string;
  readonly name: string;
  readonly rootId: number | null;
  /** The stored entity tags; null if they are not stored yet. */
  readonly tags: readonly (string | null)[];
};

/** The providers that have one of these UUIDs or names. */
export async function readPresent(
  db: Kysely<Tables>,
  uuids: readonly string[],
  names: readonly string[],
): Promise<readonly PresentProvider[]> {
  const { rows } = await sql<PresentProvider>`
    select p.id, p.uuid, coalesce(p.name, '') as name, p.root_provider_id as "rootId",
      array[e.provider, e.inventories, e.traits, e.aggregates] as tags
    from (select id from resource_providers where uuid = any(${uuids}::text[])
        union select id from resource_providers where name = any(${names}::text[])) as found
      join resource_providers p using (id) left join resource_provider_etags e on e.resource_provider_id = p.id`.execute(
    db,
  );
  return rows;
}

/** The ids of resource classes or traits by name. Locks them: none is deleted or renamed until the transaction ends. */
export async function lockNames(
  db: Kysely<Tables>,
  table: 'resource_classes' | 'traits',
  names: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const { rows } = await sql<{ name: string; id: number }>`
    select name, id from ${sql.table(table)} where name = any(${names}::text[]) order by id for key share`.execute(db);
  return new Map(rows.map(({ name, id }) => [name, id]));
}

/** Ids for new providers. */
export async function takeProviderIds(db: Kysely<Tables>, count: number): Promise<readonly number[]> {
  const { rows } = await sql<{ id: number }>`
    select ${freeProviderId(sql`index`)} as id from generate_series(1, ${count}::integer) as index`.execute(db);
  return rows.map(({ id }) => id);
}
