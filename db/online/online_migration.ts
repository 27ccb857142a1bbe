import { type RawBuilder, sql } from 'kysely';

/** What one batch of an online data migration did. */
export type Progress = {
  /** The rows that need migration, at most as many as the batch may migrate, plus the rows that cannot be migrated. */
  readonly found: number;
  readonly done: number;
};

/**
 * A migration of old data that runs in small batches while the service runs. It is idempotent. It remembers where its
 * last batch ended, so use one object for all batches of a run.
 */
export type OnlineMigration = {
  readonly name: string;
  /** @param maxCount how many rows the batch may migrate, 1 or more. */
  runBatch(maxCount: number): Promise<Progress>;
};

/** A number below all ids, where a pass over a table begins. Ids may be below zero, down to the lowest number that their column takes. */
export const beforeAllIds = Number.MIN_SAFE_INTEGER;

/** An id, or `beforeAllIds`, as a value that is compared with ids. */
export const idOf = (id: number): RawBuilder<number> => sql`${id}::bigint`;
