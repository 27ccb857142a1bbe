import { type Kysely, sql } from 'kysely';

/**
 * Claims that wait, of all processes, and when each process was heard of last. A claim without a line gets its row when it has waited
 * for a while. `claim` is a hash of its project and its consumers.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table if not exists waiting (
    number bigserial,
    claim varchar(64) primary key,
    consumers text[] not null,
    project_id varchar(255) not null,
    user_id varchar(255) not null,
    line varchar(64),
    process uuid not null,
    former_process uuid,
    since timestamptz not null,
    until timestamptz not null,
    asked_at timestamptz not null,
    waits_for varchar(16) not null,
    condition text not null,
    left_at timestamptz,
    is_removed boolean not null default false)`.execute(db);
  await sql`create index if not exists waiting_line_idx on waiting (project_id, line, number) where line is not null`.execute(
    db,
  );
  await sql`create index if not exists waiting_former_process_idx on waiting (former_process) where former_process is not null`.execute(
    db,
  );
  await sql`create table if not exists waiting_processes (id uuid primary key, seen_at timestamptz not null)`.execute(
    db,
  );
}
