import { type RawBuilder, sql } from 'kysely';

/**
 * Gives old services without a uuid one. Their rows are locked in the order of their keys, so that two processes do not wait
 * for each other in a circle: the second one waits for the first, and changes nothing.
 *
 * @param which of the services `s`
 * @param limit how many services at most; without it, all
 */
export const giveUuids = (which: RawBuilder<unknown>, limit?: number) => sql<{ readonly id: number }>`
    update services s set uuid = gen_random_uuid()::text
    from (
      select cell_id, id from services s where uuid is null and ${which}
      order by cell_id, id ${limit === undefined ? sql`` : sql`limit ${sql.lit(limit)}`} for update
    ) as old
    where s.cell_id = old.cell_id and s.id = old.id
    returning s.id`;
