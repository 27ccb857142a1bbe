import { type RawBuilder, sql } from 'kysely';
import { changesSince, isLogTooShort, type Moment } from '../../fleet/change_log.ts';

/**
 * What other transactions may do after claims were judged and before they are written, without these failing their
 * guards: claim on the same providers as long as they leave room, and delete allocations there.
 */
export type Leeway = {
  /** What the claims were judged by: a moment, and in addition these transactions. */
  readonly since: Moment;
  readonly known: readonly string[];
  /** How much other transactions may have taken of each class of each provider that the claims take from. */
  readonly rooms: readonly { readonly providerId: number; readonly classId: number; readonly room: number }[];
};

/**
 * Tables of the statement that writes claims: `overtaken` has the providers of `guard` that other transactions changed
 * by more than the leeway. An earlier statement locks the providers: a transaction that raised usages of these
 * providers has committed when this statement begins, and no other one can raise them until it ends.
 */
export const overtakenProviders = ({ since, known, rooms }: Leeway): RawBuilder<unknown> => sql`
    change as materialized (
      select provider_id, whole, class_ids, used_deltas from (${changesSince(since)}) as since
      where xid <> all(${known}::xid8[]) and (provider_id is null or provider_id in (select provider_id from guard))
    ),
    room as (
      select * from unnest(${rooms.map(({ providerId }) => providerId)}::integer[],
        ${rooms.map(({ classId }) => classId)}::integer[], ${rooms.map(({ room }) => room)}::float8[]
      ) as r (provider_id, class_id, room)
    ),
    moved as (
      select c.provider_id, m.class_id, sum(m.delta) as delta from change c, unnest(c.class_ids, c.used_deltas) as m (class_id, delta)
      group by 1, 2
    ),
    overtaken as materialized (
      select provider_id from change where whole
      union all
      select provider_id from moved join room using (provider_id, class_id) where moved.delta > room.room
      union all
      select provider_id from guard where exists (select from change where provider_id is null) or ${isLogTooShort(since)}
    ),`;
