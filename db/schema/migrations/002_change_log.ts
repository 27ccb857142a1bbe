import { type Kysely, sql } from 'kysely';
import { lockTogether } from '../brief_locks.ts';

/**
 * The change log: every change of a provider, by any program, writes a row in the same transaction. So each process can
 * refresh its fleet by reading the rows that its last snapshot did not see.
 *
 * - `whole`: read the provider again (its row, inventories, traits, aggregates). A null provider_id with `whole` means
 *   that names of traits or resource classes changed; a null provider_id without `whole` means that everything must be
 *   loaded again (a TRUNCATE).
 * - otherwise the usages of `class_ids` changed by `used_deltas` (both are null if only the generation changed).
 *
 * The triggers are statement-level with transition tables: one row per provider and statement, however many rows the
 * statement wrote.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table provider_changes (
    xid xid8 not null default pg_current_xact_id(),
    provider_id integer,
    whole boolean not null,
    class_ids integer[],
    used_deltas bigint[])`.execute(db);
  await sql`create index provider_changes_xid_idx on provider_changes (xid)`.execute(db);
  await sql`create table provider_changes_horizon (xid xid8 not null)`.execute(db);
  await sql`insert into provider_changes_horizon values (pg_current_xact_id())`.execute(db);

  for (const [name, body] of Object.entries(functions)) {
    await sql`create function ${sql.id(name)}() returns trigger language plpgsql as ${sql.lit(`begin\n  ${body};\n  return null;\nend`)}`.execute(
      db,
    );
  }
  await lockTogether(db, [...Object.keys(watched), ...namesOnly], 'share row exclusive');
  // Sent at once, so that the tables are locked for one round trip.
  await sql.raw([...triggers()].join(';')).execute(db);
}

const usage = (sign: string, rows: string) =>
  `select resource_provider_id, resource_class_id, sum(${sign}used)::bigint as delta from ${rows} group by 1, 2`;
const logUsage = (deltas: string) => `insert into provider_changes (provider_id, whole, class_ids, used_deltas)
  select resource_provider_id, false, array_agg(resource_class_id), array_agg(delta)
  from (${deltas}) as moved where delta <> 0 group by resource_provider_id`;
const logWhole = (rows: string, column: string) => `insert into provider_changes (provider_id, whole)
  select distinct ${column}, true from ${rows}`;
const bothTables = (columns: string) =>
  `(select ${columns} from old_rows union select ${columns} from new_rows) as rows`;

const functions: Readonly<Record<string, string>> = {
  log_allocations_inserted: logUsage(usage('', 'new_rows')),
  log_allocations_deleted: logUsage(usage('-', 'old_rows')),
  log_allocations_updated: logUsage(`select resource_provider_id, resource_class_id, sum(delta)::bigint as delta from
    (${usage('', 'new_rows')} union all ${usage('-', 'old_rows')}) as both_sides group by 1, 2`),
  log_provider_rows_inserted: logWhole('new_rows', 'id'),
  log_provider_rows_deleted: logWhole('old_rows', 'id'),
  log_provider_rows_updated: `insert into provider_changes (provider_id, whole)
  select n.id, (n.uuid, n.name, n.root_provider_id, n.parent_provider_id) is distinct from
    (o.uuid, o.name, o.root_provider_id, o.parent_provider_id)
  from new_rows n join old_rows o using (id)`,
  log_provider_parts_inserted: logWhole('new_rows', 'resource_provider_id'),
  log_provider_parts_deleted: logWhole('old_rows', 'resource_provider_id'),
  log_provider_parts_updated: logWhole(bothTables('resource_provider_id'), 'resource_provider_id'),
  log_names_changed: 'insert into provider_changes (provider_id, whole) values (null, true)',
  log_truncated: 'insert into provider_changes (provider_id, whole) values (null, false)',
};

/** The trigger functions of each table: the beginning of their names, before `_inserted`, `_updated`, `_deleted`. */
const watched: Readonly<Record<string, string>> = {
  allocations: 'log_allocations',
  resource_providers: 'log_provider_rows',
  inventories: 'log_provider_parts',
  resource_provider_traits: 'log_provider_parts',
  resource_provider_aggregates: 'log_provider_parts',
};

const namesOnly = ['resource_classes', 'traits', 'placement_aggregates'];

function* triggers(): Generator<string> {
  for (const [table, stem] of Object.entries(watched)) {
    yield `create trigger log_insert after insert on ${table} referencing new table as new_rows
      for each statement execute function ${stem}_inserted()`;
    yield `create trigger log_update after update on ${table} referencing old table as old_rows new table as new_rows
      for each statement execute function ${stem}_updated()`;
    yield `create trigger log_delete after delete on ${table} referencing old table as old_rows
      for each statement execute function ${stem}_deleted()`;
  }
  for (const table of ['resource_classes', 'traits']) {
    yield `create trigger log_change after insert or update or delete on ${table}
      for each statement execute function log_names_changed()`;
  }
  // The fleet stores the UUIDs of aggregates with each provider. Upstream never changes or deletes an aggregate.
  yield `create trigger log_change after update or delete on placement_aggregates
    for each statement execute function log_truncated()`;
  for (const table of [...Object.keys(watched), ...namesOnly]) {
    yield `create trigger log_truncate after truncate on ${table} for each statement execute function log_truncated()`;
  }
}
