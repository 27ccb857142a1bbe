import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { hasSeen, type NamedAllocation } from '../claims/seen_allocations.ts';

/** A consumer as the caller has read it. */
export type TermHolder = {
  readonly uuid: string;
  /** The id of the record. A consumer that was deleted and created again has a record with another id. */
  readonly id: number;
  readonly generation: number;
  /** The exact allocations that it must still have, if the client named what it has seen. */
  readonly allocations: readonly NamedAllocation[] | undefined;
};

/**
 * The end of the new term, or null for a lasting consumer. `changed`: the consumer is not as the caller has read it, or
 * its term has ended.
 */
export type TermSet = { readonly expires: Date | null } | 'changed';

type Row = { readonly isOpen: boolean; readonly expires: Date | null };

/**
 * Gives a consumer a term from now on, which replaces the term that it may have, or makes it lasting. The present term
 * must not have ended. A separate statement locks the record, so that the next statement sees whether the consumer was
 * removed. It compares the end with the clock while no other transaction can remove the consumer.
 *
 * @param seconds null makes the consumer lasting
 */
export async function setTerm(
  { write }: Pick<Database, 'write'>,
  { uuid, id, generation, allocations }: TermHolder,
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
      ? sql<Row>`${open},
    lasting as (delete from consumer_terms where consumer_id in (select id from open))
    select exists (select from open) as "isOpen", null as expires`
      : sql<Row>`${open},
    given as (
      insert into consumer_terms as t (consumer_id, generation, expires_at)
      select id, ${generation}, clock_timestamp() + make_interval(secs => ${seconds}) from open
      on conflict (consumer_id) do update set generation = excluded.generation, expires_at = excluded.expires_at
      returning t.expires_at
    )
    select exists (select from open) as "isOpen", (select expires_at from given) as expires`;
  const [row] =
    allocations === undefined ? (await write([lock, change]))[1] : (await write([lock, lockAllocations, change]))[2];
  return row?.isOpen === true ? { expires: row.expires } : 'changed';
}
