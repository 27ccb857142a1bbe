import type { Database } from '../../db/engine/connect.ts';
import type { LockWait } from '../../db/engine/slow_lane.ts';
import {
  awaitConsumer,
  awaitProvider,
  awaitTables,
  findLockedRows,
  type LockedRows,
  tablesOfClaims,
  tablesOfDeletions,
} from '../../db/statements/claims/locked_rows.ts';

/*
 * The locks of claims and deletions as keys, by which batches tell what waits for what (src/batching).
 */

const consumer = 'consumer ';
const provider = 'provider ';

/** What claims and deletions lock of the tables themselves, so that building an index keeps them waiting. */
export const tablesOfClaimsLock = 'tables of claims';
export const tablesOfDeletionsLock = 'tables of deletions';
const tables = { [tablesOfClaimsLock]: tablesOfClaims, [tablesOfDeletionsLock]: tablesOfDeletions };
export const consumerLock = (uuid: string): string => consumer + uuid;
export const providerLock = (uuid: string): string => provider + uuid;

/** The keys of those among some rows that other transactions have locked, or the one of the tables. */
export async function findLocked(
  database: Database,
  rows: LockedRows,
  tablesLock: keyof typeof tables,
): Promise<readonly string[]> {
  const locked = await findLockedRows(database, rows, tables[tablesLock]);
  if (locked === 'tables') return [tablesLock];
  return [...locked.consumers.map(consumerLock), ...locked.providers.map(providerLock)];
}

/** Waits until a lock is free. @throws `lockNotAvailable` where it waited too long */
export function awaitLock(database: Database, key: string, wait: LockWait): Promise<unknown> {
  if (key.startsWith(consumer)) return awaitConsumer(key.slice(consumer.length))(database, wait);
  if (key.startsWith(provider)) return awaitProvider(key.slice(provider.length))(database, wait);
  return awaitTables(key === tablesOfClaimsLock ? tablesOfClaims : tablesOfDeletions)(database, wait);
}
