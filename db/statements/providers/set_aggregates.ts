import { type RawBuilder, sql } from 'kysely';
import { utcNow } from '../../engine/time.ts';
import { type PartTags, partsAreWritten, writtenTags } from '../entity_tags.ts';
import { numbered } from '../numbered_rows.ts';
import {
  isWritable,
  type JudgedProvider,
  type MemberChanges,
  memberChanges,
  raisedGenerations,
  requestedWrites,
  writtenGuards,
} from './judged_provider.ts';

/** The new aggregates of a provider. */
export type WantedAggregates = Omit<JudgedProvider, 'generation'> & PartTags & { readonly uuids: readonly string[] };

/** The same for a provider that must be as it was judged. `present` are the aggregates that it is in. */
export type GuardedAggregates = WantedAggregates &
  Pick<JudgedProvider, 'generation'> & { readonly present: readonly string[] };

/**
 * Sets the aggregates of providers. Aggregates that do not exist are created. Each provider must still have its generation, which
 * is raised by one.
 *
 * Nothing is written for a provider that is not as it was judged, or if an aggregate was deleted. An earlier statement must have locked
 * the providers, so that this statement sees what earlier transactions wrote.
 */
export const setAggregates = (writes: readonly GuardedAggregates[]): readonly RawBuilder<unknown>[] => [
  createMissing(writes),
  setBy(
    writes,
    raisedGenerations(writes),
    memberChanges(writes.map(({ present, uuids }) => ({ present, wanted: uuids }))),
  ),
];

/**
 * As `setAggregates`, at any generation, which stays as it is (before microversion 1.19): the last of several writes wins.
 */
export const setLastAggregates = (writes: readonly WantedAggregates[]): readonly RawBuilder<unknown>[] => [
  createMissing(writes),
  setBy(
    writes,
    sql`
    guard as (
      select requested.index, p.id, null::integer as generation from requested, resource_providers p where ${isWritable}
    )`,
    // What it is in is not compared, and its generation stays.
    { removes: true, areLogged: false },
  ),
];

const allUuids = (writes: readonly WantedAggregates[]): readonly string[] => [
  ...new Set(writes.flatMap(({ uuids }) => uuids)),
];

/** In the order of the UUIDs, so that two transactions that insert the same aggregates cannot deadlock. */
const createMissing = (writes: readonly WantedAggregates[]) => sql`
  insert into placement_aggregates (uuid, created_at)
  select uuid, ${utcNow} from unnest(${allUuids(writes)}::text[]) as uuid order by uuid on conflict (uuid) do nothing`;

/**
 * @param guard table `guard`: the writes to be done
 * @param changes what they do
 */
function setBy(
  writes: readonly WantedAggregates[],
  guard: RawBuilder<unknown>,
  changes: MemberChanges,
): RawBuilder<unknown> {
  const { index, column } = numbered(writes, ({ uuids }) => uuids);
  const removal = sql`removed as (
      delete from resource_provider_aggregates m using guard
      where m.resource_provider_id = guard.id
        and not exists (select from member where member.id = guard.id and member.aggregate_id = m.aggregate_id)
    ),`;
  return sql`
    with ${requestedWrites(writes)}, wanted as materialized (
      select * from unnest(${index}::integer[], ${column((uuid) => uuid)}::text[]) as w (index, uuid)
    ), aggregate as materialized (
      select id, uuid from placement_aggregates where uuid = any(${allUuids(writes)}::text[]) for key share
    ), missing as materialized (
      select index from wanted where uuid not in (select uuid from aggregate)
    ), ${guard}, member as (
      select guard.id, aggregate.id as aggregate_id from guard join wanted using (index) join aggregate using (uuid)
    ), ${changes.removes ? removal : sql``} added as (
      insert into resource_provider_aggregates (resource_provider_id, aggregate_id, created_at)
      select id, aggregate_id, ${utcNow} from member on conflict do nothing
    ), ${writtenTags('aggregates')}
    ${writtenGuards(partsAreWritten(changes.areLogged))}`;
}
