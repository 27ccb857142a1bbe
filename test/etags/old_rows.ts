import { sql } from 'kysely';
import type { Database } from '../../db/engine/connect.ts';

export type OldRows = { readonly providers: number; readonly consumers: number };

/**
 * Inserts providers with two inventories each, and consumers with one allocation each, as a release before entity tags
 * left them.
 */
export async function insertOldRows({ kysely }: Database, { providers, consumers }: OldRows): Promise<void> {
  await sql`insert into projects (id, external_id) values (1000, 'old project')`.execute(kysely);
  await sql`insert into users (id, external_id) values (1000, 'old user')`.execute(kysely);
  await sql`insert into resource_providers (id, uuid, name, generation, root_provider_id)
    select 1000 + n, gen_random_uuid(), 'old ' || n, 1, 1000 + n from generate_series(1, ${providers}::integer) as n`.execute(
    kysely,
  );
  await sql`select setval(pg_get_serial_sequence('resource_providers', 'id'), 1000000)`.execute(kysely);
  await sql`insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
      allocation_ratio)
    select p.id, class, 100000, 0, 1, 1000, 1, 16.3 from resource_providers p, generate_series(0, 1) as class`.execute(
    kysely,
  );
  await sql`insert into consumers (uuid, project_id, user_id, generation)
    select gen_random_uuid(), 1000, 1000, 1 from generate_series(1, ${consumers}::integer)`.execute(kysely);
  await sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
    select 1001 + (row_number() over ()) % ${providers}::integer, 0, uuid, 1 from consumers`.execute(kysely);
  await forgetTags(kysely);
  await sql`vacuum analyze`.execute(kysely);
}

async function forgetTags(kysely: Database['kysely']): Promise<void> {
  await kysely.deleteFrom('resource_provider_etags').execute();
  await sql`select set_config('placement.etags', 'only', false)`.execute(kysely);
  for (const table of ['inventories', 'consumers', 'resource_classes', 'traits']) {
    await sql`update ${sql.table(table)} set etag = null where etag is not null`.execute(kysely);
  }
}

/** How many rows lack a tag that they should have. */
export async function countLacking({ kysely }: Database): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select ((select count(*) from consumers c where etag is null
        and exists (select from allocations a where a.consumer_id = c.uuid))
      + (select count(*) from inventories where etag is null)
      + (select count(*) from resource_classes where etag is null and name like 'CUSTOM\\_%')
      + (select count(*) from traits where etag is null and name like 'CUSTOM\\_%')
      + (select count(*) from resource_providers p left join resource_provider_etags e on e.resource_provider_id = p.id
        where e.provider is null or e.inventories is null or e.traits is null or e.aggregates is null))::integer as count`.execute(
    kysely,
  );
  return rows[0]?.count ?? 0;
}
