import type { Kysely } from 'kysely';
import { addMissingColumns } from '../missing_table.ts';

/**
 * The owners of the consumers of a claim that waits, without the owner in `project_id` and `user_id`: a project must not see nor end a
 * claim that waits for other projects as well. Pairs, in two arrays; null where all consumers are of one owner.
 *
 * It locks the table of claims that wait only.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await addMissingColumns(db, { table: 'waiting', columns: { other_projects: 'text[]', other_users: 'text[]' } });
}
