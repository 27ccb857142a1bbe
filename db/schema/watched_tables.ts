import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';

/** How many triggers of migration 002 log the changes of each table. */
const logTriggers = {
  resource_providers: 4,
  inventories: 4,
  allocations: 4,
  resource_provider_traits: 4,
  resource_provider_aggregates: 4,
  placement_aggregates: 2,
  resource_classes: 2,
  traits: 2,
} as const;

/**
 * Refuses a database in which tables lost the triggers that log changes, or have them disabled. A dump of upstream's
 * database that replaced tables does this, and so does an interrupted `pg_restore --disable-triggers`. The processes
 * would not see each other's writes. The same is true where triggers do not run, because connections begin with
 * `session_replication_role = replica`, which only a superuser can change.
 *
 * @throws Error with the tables and the remedy.
 */
export async function refuseUnwatchedTables(database: Pick<Database, 'kysely'>): Promise<void> {
  const problem = await unwatchedTablesProblem(database);
  if (problem !== undefined) throw new Error(problem);
}

/** The message of that error; undefined if all triggers are enabled. */
export async function unwatchedTablesProblem({ kysely }: Pick<Database, 'kysely'>): Promise<string | undefined> {
  const { rows } = await sql<{ name: string; disabled: 'all' | 'user' }>`
    select name, case when exists (
        select from pg_trigger g where g.tgrelid = to_regclass(name) and g.tgisinternal and g.tgenabled = 'D'
      ) then 'all' else 'user' end as disabled
    from unnest(${Object.keys(logTriggers)}::text[], ${Object.values(logTriggers)}::integer[]) as t (name, wanted)
    where wanted > (
      select count(*) from pg_trigger g
      where g.tgrelid = to_regclass(name) and g.tgname like 'log\\_%' and g.tgenabled in ('O', 'A')
    )`.execute(kysely);
  if (rows.length === 0) return (await isReplica(kysely)) ? noTriggers : undefined;
  // "all" includes the server's own triggers for foreign keys, which only a superuser can disable and enable.
  const enable = rows.map(({ name, disabled }) => `alter table ${name} enable trigger ${disabled};`).join(' ');
  const names = rows.map(({ name }) => name).join(', ');
  return (
    `Changes of ${names} would go unnoticed: triggers of these tables are disabled, or gone with the tables that a dump ` +
    `replaced. Enable them: ${enable} Or, where that does not help, restore the dump into an empty database, and run ` +
    '"placement-manage db sync" there.'
  );
}

const isReplica = async (kysely: Database['kysely']): Promise<boolean> =>
  (await sql`select where current_setting('session_replication_role') = 'replica'`.execute(kysely)).rows.length > 0;

const noTriggers =
  'Changes would go unnoticed: session_replication_role is replica on connections of this role to this database, so that no ' +
  'trigger runs. Reset it, as a superuser, where it was set: alter role ... reset session_replication_role; or alter ' +
  'database ... reset session_replication_role;';
