import { type RawBuilder, sql } from 'kysely';
import { raised } from '../generation.ts';

/*
 * A write that raises the generation of a consumer makes it lasting, unless it carries its term over. That takes two statements of
 * one transaction: the first one writes the records and so locks them, and only the second one surely sees terms that were given
 * while the first one waited for its locks.
 */

/** A column of the first statement. @param rewritten the table of the records that it has written, by their ids */
export const noteRewritten = (rewritten: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`set_config('placement.rewritten_consumers', array(select id from ${rewritten})::text, true)`;

/** The second statement. It returns when the terms end. */
export const carryTermsOver = sql<{ readonly expires: Date }>`
  update consumer_terms set generation = ${raised(sql`generation`)}
  where consumer_id = any(current_setting('placement.rewritten_consumers')::integer[])
    and (select generation from consumers where id = consumer_id) = ${raised(sql`generation`)}
  returning expires_at as expires`;
