import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';

/**
 * Logs that anything may have changed, as after a TRUNCATE: each process loads its fleet, and claims that are judged meanwhile are judged
 * again. For changes that no trigger has logged.
 */
export async function noteUnlogged({ kysely }: Pick<Database, 'kysely'>): Promise<void> {
  await sql`with of_inventories as (insert into inventory_changes default values)
    insert into provider_changes (provider_id, whole) values (null, false)`.execute(kysely);
}

/** Removes the entity tags of providers, and of consumers that have something of them: the triggers that keep the tags true did not run. */
export async function forgetTags({ kysely }: Pick<Database, 'kysely'>, providerIds: readonly number[]): Promise<void> {
  const ids = sql`any(${`{${providerIds.join()}}`}::integer[])`;
  await sql`with of_providers as (delete from resource_provider_etags where resource_provider_id = ${ids})
    update consumers set etag = null
    where etag is not null and uuid in (select consumer_id from allocations where resource_provider_id = ${ids})`.execute(
    kysely,
  );
}
