import { type Kysely, sql } from 'kysely';

/**
 * A claim raises the generations of providers and writes allocations of them, and each of the two logged a row. Where the
 * statement says that it logs each of these providers by its allocations (`placement.generations`, see write_claims.ts),
 * the row of the generation is left out: a process that reads a change of usages also reads the generation, in older releases as well.
 *
 * It only replaces a function, so it locks no table.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create or replace function log_provider_rows_updated() returns trigger language plpgsql as ${sql.lit(body)}`.execute(
    db,
  );
}

/** As in migration 010, but for the condition. */
const body = `begin
  if current_setting('placement.generations', true) is distinct from 'logged' then
    insert into provider_changes (provider_id, whole, parts)
    select n.id, (n.uuid, n.name, n.root_provider_id, n.parent_provider_id) is distinct from
      (o.uuid, o.name, o.root_provider_id, o.parent_provider_id),
      case when n.parent_provider_id is distinct from o.parent_provider_id then 33 else 1 end
    from new_rows n join old_rows o using (id);
  end if;
  return null;
end`;
