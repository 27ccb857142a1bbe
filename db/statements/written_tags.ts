import { sql } from 'kysely';

/**
 * Tells the triggers of this transaction that it leaves the entity tags of consumers right by itself, so that they have nothing
 * to do (migration 004).
 */
export const tagsAreWritten = sql`select set_config('placement.etags', 'written', true)`;
