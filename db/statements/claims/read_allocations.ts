import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { type ConsumerRow, formerGenerations, type OwnedConsumer } from '../consumers/consumer_row.ts';

/** An allocation of a consumer, with the data of its provider and consumer. */
export type ConsumerAllocationRow = NamedAllocation & {
  readonly consumer_uuid: string;
  readonly provider_generation: number;
  /** Milliseconds since 1970. */
  readonly modified: number | null;
  /** This and the following fields are null for old allocations, which have no consumer record. */
  readonly consumer_generation: number | null;
  readonly consumer_type: string | null;
  readonly project_id: string | null;
  readonly user_id: string | null;
  /** How many generations the former consumers with this UUID had. This and the following fields are 0 or null unless read in full. */
  readonly former_generations: number;
  /** When its term expires; null without a term. */
  readonly expires: Date | null;
  /** Null if it has none. */
  readonly consumer_name: string | null;
  readonly provider_name: string | null;
  /** The UUID of the root of the provider's tree. */
  readonly root_uuid: string | null;
};

/**
 * All allocations of some consumers, in the order in which they were written.
 *
 * @param inFull whether to read also what only version 2 shows: former generations, terms, names, and the roots of the providers
 */
export async function readAllocations(
  { kysely }: Database,
  consumerUuids: readonly string[],
  inFull = false,
): Promise<readonly ConsumerAllocationRow[]> {
  const whenFull = (column: RawBuilder<unknown>) => (inFull ? column : sql`null`);
  const { rows } = await sql<ConsumerAllocationRow>`
    select a.id, a.consumer_id as consumer_uuid, a.resource_provider_id as "providerId", a.resource_class_id as "classId",
      rp.uuid as provider_uuid, coalesce(rp.generation, 0) as provider_generation, rc.name as class_name, a.used,
      (extract(epoch from coalesce(a.updated_at, a.created_at)) * 1000)::float8 as modified,
      c.generation as consumer_generation, ct.name as consumer_type, p.external_id as project_id, u.external_id as user_id,
      ${inFull ? formerGenerations(sql`a.consumer_id`) : sql`0`} as former_generations,
      ${whenFull(sql`(select expires_at from consumer_terms where consumer_id = c.id and generation = c.generation)`)}::timestamptz as expires,
      ${whenFull(sql`(select name from consumer_names where consumer_id = c.id)`)} as consumer_name,
      ${whenFull(sql`rp.name`)} as provider_name,
      ${whenFull(sql`(select uuid from resource_providers where id = coalesce(rp.root_provider_id, rp.id))`)} as root_uuid
    from allocations a
    join resource_providers rp on rp.id = a.resource_provider_id
    join resource_classes rc on rc.id = a.resource_class_id
    left join consumers c on c.uuid = a.consumer_id
    left join consumer_types ct on ct.id = c.consumer_type_id
    left join projects p on p.id = c.project_id
    left join users u on u.id = c.user_id
    where a.consumer_id = any(${consumerUuids}::text[]) order by a.id`.execute(kysely);
  return rows;
}

/** An allocation on a provider, with its consumer. */
export type ProviderAllocationRow = {
  readonly provider_uuid: string;
  readonly provider_generation: number;
  /** These are null in the one row of a provider that has no allocations. */
  readonly consumer_uuid: string | null;
  readonly class_name: string | null;
  readonly used: number | null;
  /** Milliseconds since 1970. */
  readonly modified: number | null;
  /** Null also for old allocations, which have no consumer record. */
  readonly consumer_generation: number | null;
  /** How many generations the former consumers with this UUID had; 0 unless read in full. */
  readonly former_generations: number;
  /** Null if it has none, or if it was not read in full. */
  readonly consumer_name: string | null;
};

/**
 * All allocations on some providers, in the order in which they were written; no row for a provider that does not
 * exist.
 *
 * @param inFull whether to read also what only version 2 shows: former generations and the names of the consumers
 */
export async function readProviderAllocations(
  { kysely }: Database,
  providerUuids: readonly string[],
  inFull = false,
): Promise<readonly ProviderAllocationRow[]> {
  const { rows } = await sql<ProviderAllocationRow>`
    select rp.uuid as provider_uuid, coalesce(rp.generation, 0) as provider_generation, a.consumer_id as consumer_uuid,
      rc.name as class_name, a.used,
      (extract(epoch from coalesce(a.updated_at, a.created_at)) * 1000)::float8 as modified,
      c.generation as consumer_generation,
      ${inFull ? formerGenerations(sql`a.consumer_id`) : sql`0`} as former_generations,
      ${inFull ? sql`(select name from consumer_names where consumer_id = c.id)` : sql`null`} as consumer_name
    from resource_providers rp
    left join allocations a on a.resource_provider_id = rp.id
    left join resource_classes rc on rc.id = a.resource_class_id
    left join consumers c on c.uuid = a.consumer_id
    where rp.uuid = any(${providerUuids}::text[]) order by a.id`.execute(kysely);
  return rows;
}

/** A row of `allocations` as it was read before. Each time a consumer is written, its rows get new ids. */
export type SeenAllocation = {
  readonly id: number;
  readonly providerId: number;
  readonly classId: number;
  readonly used: number;
};

/** The same with the UUID of its provider and the name of its class as a client has seen them; entity tags are made of these. */
export type NamedAllocation = SeenAllocation & { readonly provider_uuid: string; readonly class_name: string };

/** These rows as a table `(id, provider_id, class_id, used)`. */
export const seenRows = (seen: readonly SeenAllocation[]): RawBuilder<unknown> => {
  const column = (name: keyof SeenAllocation) => seen.map((row) => row[name]);
  return sql`unnest(${column('id')}::integer[], ${column('providerId')}::integer[], ${column('classId')}::integer[],
    ${column('used')}::integer[])`;
};

/**
 * Whether a consumer has exactly these allocations, and their providers and classes have the same names. Those of deleted providers or
 * classes are ignored, since no reader sees them.
 *
 * An earlier statement must have locked the consumer: a rename of a class locks all consumers that have it.
 */
export const hasSeen = (uuid: string, seen: readonly NamedAllocation[]) => sql<boolean>`not exists (
          with present as (
            select a.id, a.resource_provider_id, p.uuid::text, a.resource_class_id, k.name::text, a.used from allocations a
            join resource_providers p on p.id = a.resource_provider_id join resource_classes k on k.id = a.resource_class_id
            where a.consumer_id = ${uuid}
          ), seen as (
            select * from unnest(${seen.map(({ id }) => id)}::integer[], ${seen.map(({ providerId }) => providerId)}::integer[],
              ${seen.map(({ provider_uuid }) => provider_uuid)}::text[], ${seen.map(({ classId }) => classId)}::integer[],
              ${seen.map(({ class_name }) => class_name)}::text[], ${seen.map(({ used }) => used)}::integer[])
          )
          (table present except all table seen) union all (table seen except all table present)
        )`;

/**
 * A consumer as the database has it. The generation is null where the consumer does not exist, or has only old allocations; owner and type
 * are null also where they were not requested.
 */
export type ConsumerState = OwnedConsumer &
  Pick<ConsumerRow, 'uuid' | 'id' | 'generation' | 'formerGenerations'> & {
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
    select wanted.uuid, c.id, c.generation, ${formerGenerations(sql`wanted.uuid`)} as "formerGenerations", ${owner},
      (select name from consumer_names where consumer_id = c.id) as name, coalesce((
      select json_agg(json_build_object('id', a.id, 'providerId', a.resource_provider_id, 'classId', a.resource_class_id, 'used', a.used)
        order by a.id)
      from allocations a where a.consumer_id = wanted.uuid
    ), '[]') as allocations
    from unnest(${uuids}::text[]) as wanted (uuid) left join consumers c on c.uuid = wanted.uuid ${owners}`.execute(
    kysely,
  );
  return new Map(rows.map((row) => [row.uuid, row]));
}
