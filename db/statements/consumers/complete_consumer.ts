import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { utcNow } from '../../engine/utc_now.ts';
import { hasSeen, type NamedAllocation } from '../claims/seen_allocations.ts';
import {
  type ConsumerOwner,
  type ConsumerWritten,
  type OutcomeRow,
  outcomeOf,
  ownerIds,
  selectOutcome,
  writtenColumns,
} from './consumer_write.ts';

/**
 * Creates a consumer record with generation 1 for old allocations without one. The allocations are locked, as by the
 * online data migration, so that they cannot be deleted meanwhile. If none is left, or there is a record by now,
 * nothing is written.
 *
 * @param seen the exact allocations that the consumer must still have, if the client named what it has seen
 */
export async function completeConsumer(
  { write }: Pick<Database, 'write'>,
  { uuid, seen }: { readonly uuid: string; readonly seen: readonly NamedAllocation[] | undefined },
  owner: ConsumerOwner,
): Promise<ConsumerWritten> {
  // A separate statement, so that the next one sees what other transactions did to the allocations before the lock.
  const lock = sql`select id from allocations where consumer_id = ${uuid} order by id
    ${seen === undefined ? sql`for key share` : sql`for update`}`;
  const insert = sql<OutcomeRow>`
    with ${ownerIds(owner)},
    written as (
      insert into consumers as c (uuid, project_id, user_id, consumer_type_id, generation, created_at)
      select ${uuid}, project_id, user_id, type_id, 1, ${utcNow} from owner
      where owner.exists and exists (select from allocations where consumer_id = ${uuid})
        ${seen === undefined ? sql`` : sql`and ${hasSeen(uuid, seen)}`}
      on conflict (uuid) do nothing returning ${writtenColumns}
    )
    ${selectOutcome()}`;
  const [, rows] = await write([lock, insert]);
  return outcomeOf(rows);
}
