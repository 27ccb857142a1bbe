/** How far a batch of an online data migration came. */
export type Progress = {
  /** Rows that wanted migrating, at most as many as the batch may take, and those beside them that cannot be migrated. */
  readonly found: number;
  readonly done: number;
};

/**
 * A migration of old data that runs in small batches while the service serves. It is idempotent, and it remembers where its
 * last batch ended, so one object serves all batches of a run.
 */
export type OnlineMigration = {
  readonly name: string;
  /** @param maxCount how many rows the batch may migrate, 1 or more. */
  runBatch(maxCount: number): Promise<Progress>;
};
