import { type RawBuilder, sql } from 'kysely';
import { raised } from '../generation.ts';

/*
 * A write that raises the generation of a consumer makes the consumer lasting, unless it carries the term over. That
 * takes two statements of one transaction. The first statement writes the records, and so locks them. While it waits
 * for these locks, other transactions may give terms, which only the second statement is sure to see.
 */

/**
 * A column of the first statement, which notes the ids of the records for the second statement.
 *
 * @param rewritten the table of the records that the first statement has written
 */
export const noteRewritten = (rewritten: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`set_config('placement.rewritten_consumers', array(select id from ${rewritten})::text, true)`;

/** The second statement. It returns the ends of the terms. */
export const carryTermsOver = sql<{ readonly expires: Date }>`
  update consumer_terms set generation = ${raised(sql`generation`)}
  where consumer_id = any(current_setting('placement.rewritten_consumers')::integer[])
    and (select generation from consumers where id = consumer_id) = ${raised(sql`generation`)}
  returning expires_at as expires`;
