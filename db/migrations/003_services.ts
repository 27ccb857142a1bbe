import { type Kysely, sql } from 'kysely';

/**
 * The registry of services: the agents that serve providers, in cells. Columns are Nova's, with their meaning: the integer id
 * is unique within its cell only, and the uuid came later, so that old rows may lack one. No index begins with the cell, of
 * which there are few: heartbeats must be looked up by their hosts.
 *
 * Nothing watches these tables: a heartbeat writes one row of `services` (`last_seen_up`, which no index covers, so that the
 * row stays on its page) and leaves nothing in the change log.
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
  // One host is one provider, and so it has one agent: Nova's host mapping, which puts a host into one cell.
  await sql`create unique index uniq_services0compute_host on services (host) where "binary" = 'nova-compute'`.execute(
    db,
  );
}
