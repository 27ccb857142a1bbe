import { type RawBuilder, sql } from 'kysely';

/** The parts of a provider that clients follow, in the order in which they are told, and their bits in the change log (migration 006). */
export const partBits = { provider: 1, inventories: 2, traits: 4, aggregates: 8, usages: 16 } as const;

/** The bits of all parts. */
export const allParts = 31;

/** Set where the provider has another parent, or may have: then its descendants may have another root. */
export const descendantsBit = 32;

/**
 * A row of the change log for clients that follow it. Without `providerId` it is about names: the bit of inventories stands for
 * resource classes, that of traits for traits, and `ids` are those that were renamed. `xid` is null where rows of several transactions
 * were merged.
 */
export type ChangedParts = readonly [
  xid: string | null,
  providerId: number | null,
  uuid: string | null,
  bits: number,
  ids: readonly (number | null)[] | null,
];

/**
 * The parts that rows of the log tell of, as columns of `ChangedParts`. Rows by which only a generation or times changed are left out,
 * and those of a TRUNCATE, which tells no parts: everything must be read anew.
 *
 * @param changes a relation with the columns of `changesSince`
 */
export const selectChangedParts = (changes: RawBuilder<unknown>): RawBuilder<unknown> => sql`
  select * from (
    select xid, provider_id, uuid,
      case when whole then coalesce(parts, ${sql.lit(allParts + descendantsBit)}) when class_ids is not null then ${sql.lit(partBits.usages)}
        else 0 end as bits,
      case when provider_id is null then class_ids end as ids
    from ${changes} where provider_id is not null or whole
  ) as told where bits > 0`;
