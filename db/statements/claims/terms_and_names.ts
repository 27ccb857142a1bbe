import { type RawBuilder, sql } from 'kysely';
import { carryTermsOver, noteRewritten } from '../consumers/set_term.ts';
import type { ConsumerWrite } from './claim_write.ts';

/*
 * Parts of the statement that writes claims: the terms and the names that the claims give to consumers. Without any in a batch, as in most
 * batches, the statement lacks these parts.
 */

/** The parts of the statement, and the statements after it in the same transaction. */
type ConsumerParts = {
  /** The `returning` of the part that makes the records of new consumers. */
  readonly returning: RawBuilder<unknown>;
  /** The tables `termed`, with the terms that the claims give, and `named` and `unnamed`. */
  readonly written: RawBuilder<unknown>;
  /** Columns of the result: the ends of the terms by the UUIDs of the consumers, in milliseconds since 1970. */
  readonly columns: RawBuilder<unknown>;
  readonly after: readonly RawBuilder<unknown>[];
};

/** @param known whether the statement has the table `updated` */
export function termAndNameParts(consumers: readonly ConsumerWrite[], known: boolean): ConsumerParts {
  const given = consumers.flatMap(({ uuid, term }) => (typeof term === 'object' ? [{ uuid, ...term }] : []));
  const carries = known && consumers.some(({ term }) => term === 'carried over');
  const named = consumers.flatMap(({ uuid, name }) => (typeof name === 'string' ? [{ uuid, name }] : []));
  // A new consumer has no name yet.
  const unnamed = consumers.flatMap(({ uuid, name, generation }) => (name === null && generation !== null ? uuid : []));
  const written = [
    ...(given.length === 0 ? [] : [writtenTerms(given)]),
    ...(named.length === 0 ? [] : [writtenNames(named)]),
    ...(unnamed.length === 0 ? [] : [removedNames(unnamed)]),
  ];
  return {
    returning: written.length === 0 && !carries ? sql`` : sql`returning id, uuid, generation`,
    written:
      written.length === 0
        ? sql``
        : sql`,
    recorded as (select * from created ${known ? sql`union all select * from updated` : sql``}),
    ${sql.join(
      written,
      sql`,
    `,
    )}`,
    columns: sql`${given.length === 0 ? sql`` : termColumn} ${carries ? sql`, ${noteRewritten(carriedOver(consumers))}` : sql``}`,
    after: carries ? [carryTermsOver] : [],
  };
}

/** A term begins when its row is written. At that time the record of the consumer is already locked. */
const writtenTerms = (
  given: readonly { readonly uuid: string; readonly seconds: number }[],
): RawBuilder<unknown> => sql`termed as (
      insert into consumer_terms (consumer_id, generation, expires_at)
      select id, generation, clock_timestamp() + make_interval(secs => seconds)
      from recorded join unnest(${given.map(({ uuid }) => uuid)}::text[], ${given.map(({ seconds }) => seconds)}::integer[]
      ) as g (uuid, seconds) using (uuid)
      order by id
      on conflict (consumer_id) do update set generation = excluded.generation, expires_at = excluded.expires_at
      returning consumer_id, expires_at
    )`;

/** A name that the consumer has already is not written again. */
const writtenNames = (
  named: readonly { readonly uuid: string; readonly name: string }[],
): RawBuilder<unknown> => sql`named as (
      insert into consumer_names as former (consumer_id, name)
      select id, name from recorded join unnest(${named.map(({ uuid }) => uuid)}::text[], ${named.map(({ name }) => name)}::text[]
      ) as n (uuid, name) using (uuid)
      order by id
      on conflict (consumer_id) do update set name = excluded.name where former.name <> excluded.name
    )`;

const removedNames = (uuids: readonly string[]): RawBuilder<unknown> => sql`unnamed as (
      delete from consumer_names where consumer_id = any(array(select id from recorded where uuid = any(${uuids}::text[])))
    )`;

const termColumn = sql`, (
      select json_object_agg(uuid, (extract(epoch from expires_at) * 1000)::float8) from termed join recorded on id = consumer_id
    ) as "expiresAtMs"`;

const carriedOver = (consumers: readonly ConsumerWrite[]): RawBuilder<unknown> => {
  const uuids = consumers.filter(({ term }) => term === 'carried over').map(({ uuid }) => uuid);
  return sql`updated where uuid = any(${uuids}::text[])`;
};
