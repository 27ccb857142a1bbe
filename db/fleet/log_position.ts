import { type Kysely, sql, type Transaction } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { onlyRow } from '../engine/only_row.ts';
import { serverRun, tablesId } from '../engine/server_state.ts';
import type { Tables } from '../tables.ts';
import { horizon, newestIn } from './change_log.ts';

/** The identity of the change log, and its newest transaction. */
export type LogState = {
  /**
   * The database on its server, the timeline of the server's write-ahead log, our tables, and the age of our schema. A restart keeps the
   * identity. After a failover, or in a restored copy, transactions may be missing or have other numbers, and the identity is another one.
   * If commits do not wait for the disk, the run of the server is part of the identity: a crash loses transactions that clients may have got.
   */
  readonly identity: string;
  /** The newest transaction in the log, as the text of an `xid8`. */
  readonly lastXid: string;
};

/**
 * Reads the state of the change log. The timeline is in the name of the file of the write-ahead log, since a server that was promoted
 * notes it in its control file only later. All embedded databases have one system identifier, so the time of the first migration is
 * part of the identity as well.
 */
export const readLogState = (db: Kysely<Tables>): Promise<LogState> =>
  onlyRow(
    db,
    sql<LogState>`select concat_ws(' ',
        (select system_identifier from pg_control_system()),
        left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
        (select oid from pg_database where datname = current_database()),
        ${tablesId},
        (select min(timestamp) from kysely_migration),
        case when current_setting('synchronous_commit') = 'off' then ${serverRun} end) as identity,
      coalesce(greatest(${newestIn('provider_changes')}, ${horizon}), '0')::text as "lastXid"`,
  );

/**
 * Logs that anything may have changed, as after a TRUNCATE: each process loads its fleet, and claims that are judged meanwhile are judged
 * again. For changes that no trigger has logged.
 */
export async function noteUnlogged({ kysely }: Pick<Database, 'kysely'>): Promise<void> {
  await sql`with of_inventories as (insert into inventory_changes default values)
    insert into provider_changes (provider_id, whole) values (null, false)`.execute(kysely);
}

/** Removes the entity tags of providers, and of consumers that have something of them: the triggers that keep the tags true did not run. */
export async function forgetTags({ kysely }: Pick<Database, 'kysely'>, providerIds: readonly number[]): Promise<void> {
  const ids = sql`any(${`{${providerIds.join()}}`}::integer[])`;
  await sql`with of_providers as (delete from resource_provider_etags where resource_provider_id = ${ids})
    update consumers set etag = null
    where etag is not null and uuid in (select consumer_id from allocations where resource_provider_id = ${ids})`.execute(
    kysely,
  );
}

/**
 * Reads in a second transaction that has the snapshot of another one, on a connection of requests.
 *
 * @throws an error of the database if it has no connection left, or leads to another server
 */
export async function besideSnapshot(
  { unlimitedOfRequests }: Pick<Database, 'unlimitedOfRequests'>,
  beside: Transaction<Tables>,
  read: (db: Kysely<Tables>) => Promise<void>,
): Promise<void> {
  const { name } = await onlyRow(beside, sql<{ readonly name: string }>`select pg_export_snapshot() as name`);
  await unlimitedOfRequests.connection().execute(async (db) => {
    try {
      // In one text, since nothing may be read before the snapshot is set.
      await sql`start transaction isolation level repeatable read, read only; set transaction snapshot ${sql.lit(name)}`.execute(
        db,
      );
      await read(db);
    } finally {
      await sql`rollback`.execute(db);
    }
  });
}

/**
 * Reads in one transaction, in which every statement has the same snapshot.
 *
 * @param lockTimeoutMs how long a statement waits for a lock; without it there is no separate limit
 * @throws `lockNotAvailable` if another transaction holds a lock for longer
 */
export const inSnapshot = <Result>(
  { unlimited }: Pick<Database, 'unlimited'>,
  read: (transaction: Transaction<Tables>) => Promise<Result>,
  lockTimeoutMs?: number,
): Promise<Result> =>
  unlimited
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (transaction) => {
      if (lockTimeoutMs !== undefined)
        await sql`set local lock_timeout = ${sql.lit(lockTimeoutMs)}`.execute(transaction);
      return await read(transaction);
    });
