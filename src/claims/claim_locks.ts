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
} from '../../db/statements/locked_rows.ts';

/*
 * The locks that claims and deletions need, as keys for src/queue.
 */

const consumer = 'consumer ';
const provider = 'provider ';
const relation = 'relation ';

/** The key of the locks that claims take on whole tables. Claims must wait for these locks while an index is built, for example. */
export const tablesOfClaimsLock = 'tables of claims';
/** The key of the locks that deletions take on whole tables: deletions need fewer tables. */
export const tablesOfDeletionsLock = 'tables of deletions';
const tables = { [tablesOfClaimsLock]: tablesOfClaims, [tablesOfDeletionsLock]: tablesOfDeletions };
/** The key of the lock on the record of a consumer and on its allocations. */
export const consumerLock = (uuid: string): string => consumer + uuid;
/** The key of the lock on the row of a provider. */
export const providerLock = (uuid: string): string => provider + uuid;

/**
 * The key of the lock of a consumer that claims by query name, or whose query names other consumers. Only this service takes
 * the lock, for as long as it writes.
 */
export const relationLock = (uuid: string): string => relation + uuid;

/** The keys of these rows that other transactions have locked, or the key of the tables. */
export async function findLocked(
  database: Database,
  rows: LockedRows,
  tablesLock: keyof typeof tables,
): Promise<readonly string[]> {
  const locked = await findLockedRows(database, rows, tables[tablesLock]);
  if (locked === 'tables') return [tablesLock];
  return [...locked.consumers.map(consumerLock), ...locked.providers.map(providerLock)];
}

/** Waits until a lock is free. @throws `lockNotAvailable` if it waited too long */
export function awaitLock(database: Database, key: string, wait: LockWait): Promise<unknown> {
  if (key.startsWith(consumer)) return awaitConsumer(key.slice(consumer.length))(database, wait);
  if (key.startsWith(provider)) return awaitProvider(key.slice(provider.length))(database, wait);
  if (key.startsWith(relation)) return Promise.resolve();
  return awaitTables(key === tablesOfClaimsLock ? tablesOfClaims : tablesOfDeletions)(database, wait);
}
