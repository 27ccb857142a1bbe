import { type Kysely, sql } from 'kysely';

/** Tokens that the service makes. Only the SHA-256 of a token is stored, so that a dump of the database contains no usable token. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table if not exists tokens (
    id serial primary key,
    uuid varchar(36) not null constraint uniq_tokens0uuid unique,
    hash varchar(64) not null constraint uniq_tokens0hash unique,
    prefix varchar(16) not null,
    user_id varchar(255) not null,
    project_id varchar(255) not null,
    roles text[] not null,
    created_at timestamp not null,
    expires_at timestamp,
    used_at timestamp)`.execute(db);
}
