import type { Database } from '../../db/engine/connect.ts';
import type { LockWait } from '../../db/engine/slow_lane.ts';
import {
  awaitConsumer,
  awaitProvider,
  awaitTables,
  findLockedRows,
  type LockedRows,
} from '../../db/statements/claims/locked_rows.ts';

/*
 * The locks of claims and deletions as keys, by which batches tell what waits for what (src/batching).
 */

const consumer = 'consumer ';
const provider = 'provider ';
const relation = 'relation ';

/** What a write locks of the tables themselves, so that building an index keeps it waiting. */
export const tablesLock = 'tables';
export const consumerLock = (uuid: string): string => consumer + uuid;
export const providerLock = (uuid: string): string => provider + uuid;

/** Of a consumer that claims by query name, or that names others; a transaction has it only while it writes. */
export const relationLock = (uuid: string): string => relation + uuid;

/** The keys of those among some rows that other transactions have locked. */
export async function findLocked(database: Database, rows: LockedRows): Promise<readonly string[]> {
  const locked = await findLockedRows(database, rows);
  if (locked === 'tables') return [tablesLock];
  return [...locked.consumers.map(consumerLock), ...locked.providers.map(providerLock)];
}

/** Waits until a lock is free. @throws `lockNotAvailable` where it waited too long */
export function awaitLock(database: Database, key: string, wait: LockWait): Promise<unknown> {
  if (key.startsWith(consumer)) return awaitConsumer(key.slice(consumer.length))(database, wait);
  if (key.startsWith(provider)) return awaitProvider(key.slice(provider.length))(database, wait);
  if (key.startsWith(relation)) return Promise.resolve();
  return awaitTables(database, wait);
}
