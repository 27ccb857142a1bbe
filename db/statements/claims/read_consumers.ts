import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { formerGenerations } from '../consumers/consumer_row.ts';
import type { SeenAllocation } from './read_allocations.ts';

/** A consumer as the database has it. */
export type ConsumerState = {
  readonly uuid: string;
  /** The id of the consumer record; null if there is none. */
  readonly id: number | null;
  /** Null if there is no consumer record: the consumer does not exist, or has only old allocations. */
  readonly generation: number | null;
  /** How many generations the former consumers with this UUID had. */
  readonly formerGenerations: number;
  /**
   * The names of its owner and type; null if there is no record, if the record has none, or if they were not asked for.
   */
  readonly projectId: string | null;
  readonly userId: string | null;
  readonly consumerType: string | null;
  /** In the order in which they were written. */
  readonly allocations: readonly SeenAllocation[];
};

/**
 * Reads some consumers with their allocations, in one snapshot. The result has an entry for each UUID, also without a
 * record.
 *
 * @param withOwner whether to read their owners and types as well; most claims contain them
 */
export async function readConsumers(
  { kysely }: Database,
  uuids: readonly string[],
  withOwner = false,
): Promise<ReadonlyMap<string, ConsumerState>> {
  const owner = withOwner
    ? sql`p.external_id as "projectId", u.external_id as "userId", t.name as "consumerType"`
    : sql`null as "projectId", null as "userId", null as "consumerType"`;
  const owners = withOwner
    ? sql`left join projects p on p.id = c.project_id left join users u on u.id = c.user_id
      left join consumer_types t on t.id = c.consumer_type_id`
    : sql``;
  const { rows } = await sql<ConsumerState>`
    select wanted.uuid, c.id, c.generation, ${formerGenerations(sql`wanted.uuid`)} as "formerGenerations", ${owner}, coalesce((
      select json_agg(json_build_object('id', a.id, 'providerId', a.resource_provider_id, 'classId', a.resource_class_id, 'used', a.used)
        order by a.id)
      from allocations a where a.consumer_id = wanted.uuid
    ), '[]') as allocations
    from unnest(${uuids}::text[]) as wanted (uuid) left join consumers c on c.uuid = wanted.uuid ${owners}`.execute(
    kysely,
  );
  return new Map(rows.map((row) => [row.uuid, row]));
}
