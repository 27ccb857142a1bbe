import { type Kysely, sql } from 'kysely';

/** Drops the indexes that migration 008 built before. Where there are none, this needs no lock of the table. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`drop index if exists consumers_user_id_uuid_idx, consumers_type_uuid_idx`.execute(db);
}
