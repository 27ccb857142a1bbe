import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { hasSeen, type NamedAllocation } from '../claims/read_allocations.ts';
import { raised } from '../generations.ts';

/** The record of a consumer, as the caller has seen it. */
export type SeenConsumer = {
  readonly uuid: string;
  /** A record that was deleted and created again has another id. */
  readonly id: number;
  readonly generation: number;
  /**
   * The exact allocations that it must still have, if the client named what it has seen: some writes do not raise the
   * generation.
   */
  readonly allocations: readonly NamedAllocation[] | undefined;
};

/**
 * When the new term expires, or null without a term. `changed`: the consumer is not as the caller has read it, or
 * its term has expired.
 */
type TermSet = { readonly expires: Date | null } | 'changed';

type TermRow = { readonly isOpen: boolean; readonly expires: Date | null };

/**
 * Sets the term of a consumer from now on, which replaces its present term, or removes the term. The present term must
 * not have expired. A separate statement locks the record, so that the next statement sees whether the consumer was
 * removed. It compares the end with the clock while no other transaction can remove the consumer.
 *
 * @param seconds null removes the term
 */
export async function setTerm(
  { write }: Pick<Database, 'write'>,
  { uuid, id, generation, allocations }: SeenConsumer,
  seconds: number | null,
): Promise<TermSet> {
  const lock = sql`select id from consumers where uuid = ${uuid} for update`;
  const lockAllocations = sql`select id from allocations where consumer_id = ${uuid} order by id for update`;
  const open = sql`
    with open as materialized (
      select c.id from consumers c
      left join lateral (
        select expires_at from consumer_terms where consumer_id = c.id and generation = c.generation offset 0
      ) as t on true
      where c.uuid = ${uuid} and c.id = ${id} and c.generation = ${generation}
        and (t.expires_at is null or t.expires_at > clock_timestamp())
        ${allocations === undefined ? sql`` : sql`and ${hasSeen(uuid, allocations)}`}
    )`;
  const change =
    seconds === null
      ? sql<TermRow>`${open},
    lasting as (delete from consumer_terms where consumer_id in (select id from open))
    select exists (select from open) as "isOpen", null::timestamptz as expires`
      : sql<TermRow>`${open},
    renewed as (
      insert into consumer_terms as t (consumer_id, generation, expires_at)
      select id, ${generation}, clock_timestamp() + make_interval(secs => ${seconds}) from open
      on conflict (consumer_id) do update set generation = excluded.generation, expires_at = excluded.expires_at
      returning t.expires_at
    )
    select exists (select from open) as "isOpen", (select expires_at from renewed) as expires`;
  const [row] =
    allocations === undefined ? (await write([lock, change]))[1] : (await write([lock, lockAllocations, change]))[2];
  return row?.isOpen === true ? { expires: row.expires } : 'changed';
}

/*
 * A write that raises the generation of a consumer removes its term, unless the write carries the term over. That
 * takes two statements of one transaction. The first statement writes the records, and so locks them. While it waits
 * for these locks, other transactions may set terms, which only the second statement is sure to see.
 */

/**
 * A column of the first statement, which notes the ids of the records for the second statement.
 *
 * @param rewritten the table of the records that the first statement has written
 */
export const noteRewritten = (rewritten: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`set_config('placement.rewritten_consumers', array(select id from ${rewritten})::text, true)`;

/** The second statement. It returns when the terms expire. */
export const carryTermsOver = sql<{ readonly expires: Date }>`
  update consumer_terms set generation = ${raised(sql`generation`)}
  where consumer_id = any(current_setting('placement.rewritten_consumers')::integer[])
    and (select generation from consumers where id = consumer_id) = ${raised(sql`generation`)}
  returning expires_at as expires`;
