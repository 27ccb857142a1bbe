import { type Kysely, sql } from 'kysely';

/**
 * The other owners of the consumers of a claim that waits, where these are not all of the owner in `project_id` and `user_id`: a project
 * must not see nor end what waits for other projects as well. Pairs, in two arrays; null where there is one owner.
 *
 * It locks the table of claims that wait only.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table waiting add column if not exists other_projects text[], add column if not exists other_users text[]`.execute(
    db,
  );
}
