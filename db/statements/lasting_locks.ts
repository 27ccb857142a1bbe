import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { briefWaitMs } from './brief_wait.ts';

/** What claims lock: providers and consumers, by their UUIDs. */
export type ClaimedRows = { readonly providers: ReadonlySet<string>; readonly consumers: ReadonlySet<string> };

/**
 * Which rows one transaction holds for half a second at least. What others lock one after the other is not among them.
 *
 * @param pause between the two looks at them
 * @throws `lockNotAvailable`, soon, where a table that claims write is locked as a whole
 */
export async function findLastingLocks(
  database: Database,
  rows: ClaimedRows,
  pause: () => Promise<unknown> = () => sleep(500),
): Promise<ClaimedRows> {
  const before = new Set((await lockedNow(database, rows)).map(lockOf));
  if (before.size === 0) return { providers: new Set(), consumers: new Set() };
  await pause();
  const lasting = (await lockedNow(database, rows)).filter((row) => before.has(lockOf(row)));
  const uuidsOf = (table: LockedRow['table']): ReadonlySet<string> =>
    new Set(lasting.filter((row) => row.table === table).map(({ uuid }) => uuid));
  return { providers: uuidsOf('resource_providers'), consumers: uuidsOf('consumers') };
}

type LockedRow = {
  readonly table: 'resource_providers' | 'consumers';
  readonly uuid: string;
  /** The transaction that locked the row. */
  readonly holder: string;
};

const lockOf = ({ table, uuid, holder }: LockedRow): string => `${table} ${uuid} ${holder}`;

/** As claims lock the tables that they write: who builds an index, or vacuums in full, keeps all of them waiting. */
const lockTables = sql`lock table allocations, consumers, resource_providers, provider_changes in row exclusive mode`;

/** Locks what it can, for the length of this transaction: the rest somebody else has locked. */
async function lockedNow(
  { transaction }: Pick<Database, 'transaction'>,
  rows: ClaimedRows,
): Promise<readonly LockedRow[]> {
  const providers = sql`${[...rows.providers]}::text[]`;
  const consumers = sql`${[...rows.consumers]}::text[]`;
  const statement = sql<LockedRow>`
    with free_provider as materialized (
      select id from resource_providers where uuid = any(${providers}) for no key update skip locked
    ),
    free_consumer as materialized (select id from consumers where uuid = any(${consumers}) for update skip locked)
    select 'resource_providers' as table, uuid, xmax::text as holder from resource_providers
    where uuid = any(${providers}) and id not in (select id from free_provider)
    union all
    select 'consumers', uuid, xmax::text from consumers
    where uuid = any(${consumers}) and id not in (select id from free_consumer)`;
  const [, locked] = await transaction([lockTables, statement], { lockTimeoutMs: briefWaitMs });
  return locked;
}
