import { sql } from 'kysely';
import type { Database } from '../connect.ts';

/** What the database has of a consumer. */
export type ConsumerState = {
  readonly uuid: string;
  /** Null where there is no consumer record: a consumer that is not there, or old allocations without one. */
  readonly generation: number | null;
  readonly allocations: readonly { readonly providerId: number; readonly classId: number; readonly used: number }[];
};

/** Reads some consumers with their allocations, in one snapshot. Every UUID that is asked for is in the answer. */
export async function readConsumers(
  { kysely }: Database,
  uuids: readonly string[],
): Promise<ReadonlyMap<string, ConsumerState>> {
  const { rows } = await sql<ConsumerState>`
    select wanted.uuid, c.generation, coalesce((
      select json_agg(json_build_object('providerId', a.resource_provider_id, 'classId', a.resource_class_id, 'used', a.used)
        order by a.id)
      from allocations a where a.consumer_id = wanted.uuid
    ), '[]') as allocations
    from unnest(${uuids}::text[]) as wanted (uuid) left join consumers c on c.uuid = wanted.uuid`.execute(kysely);
  return new Map(rows.map((row) => [row.uuid, row]));
}
