import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { utcNow } from '../../engine/utc_now.ts';
import { hasSeen, type NamedAllocation } from '../claims/seen_allocations.ts';
import { raised } from '../generation.ts';
import { carryTermsOver, noteRewritten } from './carry_terms_over.ts';
import {
  type ConsumerOwner,
  type ConsumerWritten,
  type OutcomeRow,
  outcomeOf,
  ownerIds,
  selectOutcome,
  writtenColumns,
} from './consumer_write.ts';

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
 * Gives the record of a consumer another owner and type, and the next generation, if it still is the one that was seen.
 * A claim on the same consumer that was judged before this write then fails its guard. After a claim that was written
 * first, this write fails. The consumer keeps its term.
 */
export async function updateConsumer(
  { write }: Pick<Database, 'write'>,
  { uuid, id, generation, allocations }: SeenConsumer,
  owner: ConsumerOwner,
): Promise<ConsumerWritten> {
  const update = sql<OutcomeRow>`
    with ${ownerIds(owner)},
    written as (
      update consumers c set generation = ${raised(sql`c.generation`)}, project_id = owner.project_id,
        user_id = owner.user_id, consumer_type_id = owner.type_id, updated_at = ${utcNow}
      from owner where owner.exists and c.uuid = ${uuid} and c.generation = ${generation} and c.id = ${id}
        ${allocations === undefined ? sql`` : sql`and ${hasSeen(uuid, allocations)}`}
      returning c.id, ${writtenColumns}
    )
    ${selectOutcome(sql`, ${noteRewritten(sql`written`)}`)}`;
  if (allocations === undefined) {
    const [rows, terms] = await write([update, carryTermsOver]);
    return outcomeOf(rows, terms);
  }
  const lock = sql`select id from consumers where uuid = ${uuid} for update`;
  const lockAllocations = sql`select id from allocations where consumer_id = ${uuid} order by id for update`;
  const [, , rows, terms] = await write([lock, lockAllocations, update, carryTermsOver]);
  return outcomeOf(rows, terms);
}
