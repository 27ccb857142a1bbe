import { sql } from 'kysely';
import type { Database } from './connect.ts';
import { standardResourceClasses } from './standard_resource_classes.ts';
import { standardTraits } from './standard_traits.ts';

/**
 * Makes sure that the standard traits and resource classes exist, as upstream does at each start. A class has its place in
 * the list as id; traits get theirs in the order of their names, so standard traits come before custom ones.
 */
export async function syncStandardNames({ kysely }: Database): Promise<void> {
  // At almost every start there is nothing to add.
  await sql`insert into traits (name, created_at)
    select name, now() at time zone 'utc' from unnest(${standardTraits}::text[]) with ordinality as standard (name, place)
    where not exists (select from traits t where t.name = standard.name)
    order by place on conflict do nothing`.execute(kysely);
  await sql`insert into resource_classes (id, name, created_at)
    select place - 1, name, now() at time zone 'utc'
    from unnest(${standardResourceClasses}::text[]) with ordinality as standard (name, place)
    where not exists (select from resource_classes c where c.name = standard.name)
    on conflict do nothing`.execute(kysely);
}
