import { type Kysely, sql } from 'kysely';

/** Drops the indexes that older releases built in migration 008. Only where they exist does it lock the table of consumers. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`drop index if exists consumers_user_id_uuid_idx, consumers_type_uuid_idx`.execute(db);
}
