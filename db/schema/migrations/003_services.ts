import { type Kysely, sql } from 'kysely';

/**
 * The registry of services: the agents that serve providers, grouped in cells. The columns have their meaning in Nova:
 * the integer id is unique only within its cell, and the uuid was added later, so old rows may lack it. No index begins
 * with the cell, since there are few cells: heartbeats must be looked up by their hosts.
 *
 * These tables have no triggers for the change log: a heartbeat only writes one row of `services`. No index contains
 * `last_seen_up`, so that the row stays on its page.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table cells (
    created_at timestamp, updated_at timestamp,
    id serial primary key,
    uuid varchar(36) not null constraint uniq_cells0uuid unique,
    name varchar(255) not null constraint uniq_cells0name unique,
    last_service_id integer not null default 0)`.execute(db);
  await sql`create table services (
    created_at timestamp, updated_at timestamp,
    cell_id integer not null constraint services_cell_id_fkey references cells (id),
    id integer not null,
    uuid varchar(36) constraint uniq_services0uuid unique,
    host varchar(255) not null,
    "binary" varchar(255) not null,
    topic varchar(255),
    zone varchar(255),
    disabled boolean not null default false,
    disabled_reason varchar(255),
    forced_down boolean not null default false,
    last_seen_up timestamp,
    primary key (id, cell_id),
    constraint uniq_services0host_binary_cell unique (host, "binary", cell_id)) with (fillfactor = 70)`.execute(db);
  // A host is one provider, so it has one agent. Likewise Nova's host mapping puts a host into one cell only.
  await sql`create unique index uniq_services0compute_host on services (host) where "binary" = 'nova-compute'`.execute(
    db,
  );
}
