import { sql } from 'kysely';
import type { Database } from './connect.ts';
import { onlyRow } from './only_row.ts';

/** The time of the transaction as the timestamp columns store it: UTC, without a zone. */
export const utcNow = sql<Date>`(now() at time zone 'utc')`;

/** The time of the database, in milliseconds since 1970. */
export async function readClock({ kysely }: Pick<Database, 'kysely'>): Promise<number> {
  const { nowMs } = await onlyRow(
    kysely,
    sql<{ nowMs: number }>`select floor(extract(epoch from clock_timestamp()) * 1000)::float8 as "nowMs"`,
  );
  return nowMs;
}
