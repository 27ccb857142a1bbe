import { sql } from 'kysely';

/** The time of the transaction as the timestamp columns store it: UTC, without a zone. */
export const utcNow = sql<Date>`(now() at time zone 'utc')`;
