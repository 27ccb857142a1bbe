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
 * The consumers with allocations in each tree, in the order in which the allocations were written.
 *
 * @returns the UUIDs in a tree by the id of its root. They are parsed on access: the answer of the database may have a
 *   hundred thousand, and node-postgres takes a microsecond or more for each element of an array.
 */
export async function readHostedConsumers(
  { kysely }: Database,
  members: TreeMembers,
): Promise<(rootId: number) => readonly string[]> {
  const { rows } = await sql<{ root: number; consumers: string }>`
    select root, json_agg(consumer order by first)::text as consumers from (
      select m.root, a.consumer_id::text as consumer, min(a.id) as first
      from ${unnested(members)} join allocations a on a.resource_provider_id = m.provider group by m.root, a.consumer_id
    ) as hosted group by root`.execute(kysely);
  const texts = new Map(rows.map(({ root, consumers }) => [root, consumers]));
  return (rootId) => JSON.parse(texts.get(rootId) ?? '[]') as readonly string[]; // the statement makes lists of texts
}

const unnested = (members: TreeMembers) => sql`unnest(${members.map(({ rootId }) => rootId)}::integer[],
  ${members.map(({ providerId }) => providerId)}::integer[]) as m (root, provider)`;
