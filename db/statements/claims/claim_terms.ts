import { type RawBuilder, sql } from 'kysely';
import { carryTermsOver, noteRewritten } from '../consumers/carry_terms_over.ts';
import type { ClaimWrite, ConsumerWrite } from './claim_write.ts';

/*
 * Parts of the statement that writes claims: the terms that the claims give to consumers. Without terms in a batch, as
 * in most batches, the statement lacks these parts.
 */

/** The parts of the statement, and the statements after it in the same transaction. */
export type TermParts = {
  /** The `returning` of the part that makes the records of new consumers. */
  readonly returning: RawBuilder<unknown>;
  /** The table `termed`: the terms that the claims give. */
  readonly written: RawBuilder<unknown>;
  /** Columns of the result: the ends of the terms by the UUIDs of the consumers, in milliseconds since 1970. */
  readonly columns: RawBuilder<unknown>;
  readonly after: readonly RawBuilder<unknown>[];
};

const noTerms: TermParts = { returning: sql``, written: sql``, columns: sql``, after: [] };

/** @param known whether the statement has the table `updated` */
export function termParts(claims: readonly ClaimWrite[], known: boolean): TermParts {
  const consumers = claims.flatMap((claim) => claim.consumers);
  const given = consumers.flatMap(({ uuid, term }) => (typeof term === 'object' ? [{ uuid, ...term }] : []));
  const carries = known && consumers.some(({ term }) => term === 'carried over');
  if (given.length === 0 && !carries) return noTerms;
  return {
    returning: sql`returning id, uuid, generation`,
    written: given.length === 0 ? sql`` : sql`, ${writtenTerms(given, known)}`,
    columns: sql`${given.length === 0 ? sql`` : toldTerms} ${carries ? sql`, ${noteRewritten(carriedOver(consumers))}` : sql``}`,
    after: carries ? [carryTermsOver] : [],
  };
}

/** A term begins when its row is written. At that time the record of the consumer is already locked. */
const writtenTerms = (
  given: readonly { readonly uuid: string; readonly seconds: number }[],
  known: boolean,
): RawBuilder<unknown> => sql`
    recorded as (select * from created ${known ? sql`union all select * from updated` : sql``}),
    termed as (
      insert into consumer_terms (consumer_id, generation, expires_at)
      select id, generation, clock_timestamp() + make_interval(secs => seconds)
      from recorded join unnest(${given.map(({ uuid }) => uuid)}::text[], ${given.map(({ seconds }) => seconds)}::integer[]
      ) as g (uuid, seconds) using (uuid)
      order by id
      on conflict (consumer_id) do update set generation = excluded.generation, expires_at = excluded.expires_at
      returning consumer_id, expires_at
    )`;

const toldTerms = sql`, (
      select json_object_agg(uuid, (extract(epoch from expires_at) * 1000)::float8) from termed join recorded on id = consumer_id
    ) as "expiresAtMs"`;

const carriedOver = (consumers: readonly ConsumerWrite[]): RawBuilder<unknown> => {
  const uuids = consumers.filter(({ term }) => term === 'carried over').map(({ uuid }) => uuid);
  return sql`updated where uuid = any(${uuids}::text[])`;
};
