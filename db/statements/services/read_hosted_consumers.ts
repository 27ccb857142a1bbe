import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';

/** Providers by id, each with the root of its tree. */
export type TreeMembers = readonly { readonly rootId: number; readonly providerId: number }[];

/** How many consumers have allocations in each tree, by the id of its root; trees without allocations are absent. */
export async function countHostedConsumers(
  { kysely }: Database,
  members: TreeMembers,
): Promise<ReadonlyMap<number, number>> {
  const { rows } = await sql<{ root: number; consumers: number }>`
    select m.root, count(distinct a.consumer_id)::integer as consumers
    from ${unnested(members)} join allocations a on a.resource_provider_id = m.provider group by m.root`.execute(
    kysely,
  );
  return new Map(rows.map(({ root, consumers }) => [root, consumers]));
}

/**
 * The consumers with allocations in each tree, by the id of its root, in the order in which the allocations were
 * written.
 */
export async function readHostedConsumers(
  { kysely }: Database,
  members: TreeMembers,
): Promise<ReadonlyMap<number, readonly string[]>> {
  const { rows } = await sql<{ root: number; consumers: string[] }>`
    select root, array_agg(consumer order by first) as consumers from (
      select m.root, a.consumer_id::text as consumer, min(a.id) as first
      from ${unnested(members)} join allocations a on a.resource_provider_id = m.provider group by m.root, a.consumer_id
    ) as hosted group by root`.execute(kysely);
  return new Map(rows.map(({ root, consumers }) => [root, consumers]));
}

const unnested = (members: TreeMembers) => sql`unnest(${members.map(({ rootId }) => rootId)}::integer[],
  ${members.map(({ providerId }) => providerId)}::integer[]) as m (root, provider)`;
