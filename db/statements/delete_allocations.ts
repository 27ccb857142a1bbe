import { sql } from 'kysely';
import type { Database } from '../connect.ts';

/**
 * Deletes all allocations of a consumer, and the consumer, whatever its generation is.
 *
 * The consumer is locked by a statement of its own, so that the next one, with a newer snapshot, sees all that writers before
 * us wrote; writers after us find no consumer and lose their guard. Old allocations without a consumer are locked instead,
 * and first: whoever gives them one, the online data migration or a claim, has done so when the consumer is locked, or
 * finds them gone.
 *
 * @returns how many allocations there were.
 */
export async function deleteAllocations({ kysely, transaction }: Database, consumerUuid: string): Promise<number> {
  const lockOld = sql`select id from allocations where consumer_id = ${consumerUuid}
    and not exists (select from consumers where uuid = ${consumerUuid}) for update`;
  const lock = sql`select id from consumers where uuid = ${consumerUuid} for update`;
  const remove = sql`with gone as (delete from consumers where uuid = ${consumerUuid})
    delete from allocations where consumer_id = ${consumerUuid} returning id`;
  const [, , removed] = await transaction([lockOld, lock, remove].map((statement) => statement.compile(kysely)));
  return removed?.length ?? 0;
}
