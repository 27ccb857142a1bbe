import { type RawBuilder, sql } from 'kysely';
import { waitBriefly } from './brief_wait.ts';
import { changesSince, isLogTooShort, type Moment } from './change_log.ts';
import { type ClaimWrite, providerIds } from './claim_write.ts';

/**
 * What others may do between the judgement of claims and their writing, without the claims losing their guards: claim on
 * the same providers as long as they leave room, and delete allocations there.
 */
export type Leeway = {
  /** What the claims were judged by: a moment, and these transactions besides. */
  readonly since: Moment;
  readonly known: readonly string[];
  /** How much more others may have taken of each class on each provider that the claims take something of. */
  readonly rooms: readonly { readonly providerId: number; readonly classId: number; readonly room: number }[];
};

/**
 * Locks the providers of claims, ahead of the statement that writes them: whoever made their usages grow has committed when
 * that statement begins, and nobody else does until it ends.
 */
export const lockProviders = (claims: readonly ClaimWrite[]): RawBuilder<unknown> => sql`
    select id from resource_providers
    where id = any(${providerIds(claims)}::integer[])
      ${claims.length > 1 ? sql`and (${waitBriefly}) is not null` : sql``}
    order by id for no key update`;

/** Tables of that statement: `overtaken` has the providers of `guard` to which others did more than the leeway allows. */
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
