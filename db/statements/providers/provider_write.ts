import { type RawBuilder, sql } from 'kysely';
import { type Database, failedStatement } from '../../engine/connect.ts';
import { isOnRun } from '../../engine/server_run.ts';
import type { LockWait } from '../../engine/slow_lane.ts';
import { isFaultOfOne } from '../../engine/sqlstate.ts';
import { utcNow } from '../../engine/utc_now.ts';
import { raised } from '../generation.ts';
import { lockProvidersFirst } from '../lock_providers.ts';

/**
 * A write of a provider or a part of it, which can share a transaction with other writes. Its last statement returns
 * one row if the write was done, and none if the provider was not as it was judged.
 */
export type ProviderWrite = {
  /**
   * The provider that it locks: the one that it writes, or the parent of the one that it inserts. Absent if it locks
   * none.
   */
  readonly lockedId?: number | undefined;
  readonly statements: readonly RawBuilder<unknown>[];
};

/** What a provider was judged by. */
export type JudgedProvider = {
  readonly providerId: number;
  readonly generation: number;
  /**
   * The run of the server that the generation was read from (db/engine/server_run.ts). Without it, it is not checked.
   */
  readonly serverRun?: string;
};

/** Raises the generation of a provider and returns its id, if it still has the generation that it was judged by. */
export const nextGeneration = (judged: JudgedProvider, condition = sql`true`): RawBuilder<unknown> => sql`
  update resource_providers set generation = ${raised(sql`generation`)}, updated_at = ${utcNow}
  where id = ${judged.providerId} and coalesce(generation, 0) = ${judged.generation}
    and ${isOnRun(judged.serverRun)} and ${condition}
  returning id`;

/**
 * Does several writes in one transaction and one round trip. Each write sees the results of those before it. They are
 * sorted by the providers that they lock, as claims are, so that two transactions that lock the same providers cannot
 * deadlock.
 *
 * @param wait how long to wait for each lock. Without it, the time limit of a statement applies.
 * @returns the writes that were done
 * @throws ProviderWriteFailed if one write failed, also with `lockNotAvailable` if another transaction holds a lock
 *   that it needs; other errors as they are. Then nothing of any write was done.
 */
export async function writeProviders(
  { transaction }: Pick<Database, 'transaction'>,
  writes: readonly ProviderWrite[],
  wait?: LockWait,
): Promise<ReadonlySet<ProviderWrite>> {
  const sorted = writes.toSorted((a, b) => (a.lockedId ?? 0) - (b.lockedId ?? 0));
  const locks = lockProvidersFirst(
    sorted.flatMap(({ lockedId = [] }) => lockedId),
    wait,
  );
  const statements = sorted.flatMap((write) => write.statements.map((statement) => ({ write, statement })));
  try {
    const results = await transaction([...locks, ...statements.map(({ statement }) => statement)], wait);
    const rows = results.slice(locks.length);
    return new Set(
      writes.filter((write) => rows[statements.findLastIndex((each) => each.write === write)]?.length === 1),
    );
  } catch (error) {
    const failed = statements[(failedStatement(error) ?? -1) - locks.length];
    throw failed === undefined || !isFaultOfOne(error) ? error : new ProviderWriteFailed(failed.write, error);
  }
}

/** One of several writes failed, so none of them was done. Its cause is the error of the database. */
export class ProviderWriteFailed extends Error {
  readonly write: ProviderWrite;

  constructor(write: ProviderWrite, cause: unknown) {
    super('A write of a provider failed.', { cause });
    this.write = write;
  }
}
