import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../connect.ts';
import { serverRun } from '../server_run.ts';
import { utcNow } from '../utc_now.ts';
import { briefWaitMs } from './brief_wait.ts';

/**
 * A write of a provider or a part of it, to be done together with others: statements, of which the last gives a row where it
 * was done, and none where the provider was not as it was judged.
 */
export type ProviderWrite = {
  /** The provider that it locks: which it writes, or the parent of one that it makes. Absent where it locks none. */
  readonly lockedId?: number | undefined;
  readonly statements: readonly RawBuilder<unknown>[];
};

/** What a provider was judged by. */
export type JudgedProvider = {
  readonly providerId: number;
  readonly generation: number;
  /** The run of the server that told it (db/server_run.ts); without it, any. */
  readonly serverRun?: string;
};

/** Gives a provider the next generation, where it still has the one that it was judged by. Returns its id then. */
export const nextGeneration = (judged: JudgedProvider, condition = sql`true`): RawBuilder<unknown> => sql`
  update resource_providers set generation = coalesce(generation, 0) + 1, updated_at = ${utcNow}
  where id = ${judged.providerId} and coalesce(generation, 0) = ${judged.generation}
    and coalesce(${serverRun} = ${judged.serverRun ?? null}::text, true) and ${condition}
  returning id`;

/**
 * Does some writes in one transaction and round trip. Each sees what the ones before it did; they are sorted by the
 * provider that they lock, as claims are, so that two who lock the same providers cannot wait for each other in a circle.
 *
 * @returns which of them were done
 * @throws what one of them throws, or `lockNotAvailable` where somebody holds what one of several needs; nothing of any was done
 *   then.
 */
export async function writeProviders(
  { transaction }: Pick<Database, 'transaction'>,
  writes: readonly ProviderWrite[],
): Promise<ReadonlySet<ProviderWrite>> {
  const sorted = writes.toSorted((a, b) => (a.lockedId ?? 0) - (b.lockedId ?? 0));
  const statements = sorted.flatMap((write) => write.statements);
  const rows = await transaction(statements, writes.length > 1 ? { lockTimeoutMs: briefWaitMs } : {});
  const done = new Set<ProviderWrite>();
  let place = 0;
  for (const write of sorted) {
    place += write.statements.length;
    if (rows[place - 1]?.length === 1) done.add(write);
  }
  return done;
}
