import { type Kysely, type RawBuilder, sql, type Transaction } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { onlyRow } from '../engine/only_row.ts';
import { serverRun } from '../engine/server_state.ts';
import type { Tables } from '../tables.ts';
import {
  changesSince,
  type FleetSnapshot,
  isLogTooShort,
  isPruned,
  type LogPoint,
  lastXid,
  newestIn,
} from './change_log.ts';
import { type LimitRows, limitRows, listOf, type NameRow, selectClassNames, selectTraitNames } from './rows.ts';

/** The parts of a provider that clients follow, in the order in which they are reported, and their bits in the change log (migration 006). */
export const partBits = { provider: 1, inventories: 2, traits: 4, aggregates: 8, usages: 16 } as const;

/** The bits of all parts. */
export const allParts = 31;

/** Set where the provider has another parent, or may have: then its descendants may have another root. */
export const descendantsBit = 32;

/** Set in a row about limits. */
const limitsBit = 64;

/** Set in a row about consumers (migration 014). */
export const consumersBit = 128;
/** Set where a consumer has nothing any more. */
export const goneBit = 256;
/** Set if the consumer was removed because its term expired. */
export const termBit = 512;

/** Whether a row of the change log says that limits changed (migration 010), which clients do not follow. */
export const areLimits = sql`provider_id is null and whole and parts is not distinct from ${sql.lit(limitsBit)}`;
/** Whether a row of the change log says that names of traits or of resource classes changed. */
export const areNames = sql`provider_id is null and whole and (parts is null or parts < ${sql.lit(limitsBit)})`;

/**
 * A row of the change log for clients that follow it. Without `providerId` the row is about a consumer, or about names. A row about a
 * consumer has the state of the consumer when the row was read; without a UUID it is about all consumers. In a row about names, the bit
 * of inventories means resource classes, the bit of traits means traits, and `ids` are the renamed ones. `xid` is null where rows of
 * several transactions were merged.
 */
export type ChangedParts = readonly [
  xid: string | null,
  providerId: number | null,
  uuid: string | null,
  bits: number,
  ids: readonly (number | null)[] | null,
];

/**
 * The parts that rows of the log name, as columns of `ChangedParts`. Two kinds of rows are left out: rows by which only a generation or
 * times changed, and rows of a TRUNCATE. A TRUNCATE names no parts, and everything is read again after it.
 *
 * @param changes a relation with the columns of `changesSince`
 */
export const selectChangedParts = (changes: RawBuilder<unknown>): RawBuilder<unknown> => sql`
  select * from (
    select xid, provider_id, uuid,
      case when whole then coalesce(parts, ${sql.lit(allParts + descendantsBit)}) when class_ids is not null then ${sql.lit(partBits.usages)}
        else 0 end as bits,
      case when provider_id is null then class_ids end as ids
    from ${changes} where provider_id is not null or (${areNames})
  ) as named where bits > 0`;

/** How many consumers one statement reads. If there are more, clients that follow consumers read everything again. */
const mostConsumers = 20_000;

/**
 * The consumers that rows of the log name, as columns of `ChangedParts`, and `logged_at`: of two rows about the same consumer the later
 * one holds; of two at the same time the one about a term.
 *
 * @param changes a relation with the columns of `changesSince`
 */
export const selectChangedConsumers = (changes: RawBuilder<unknown>): RawBuilder<unknown> => sql`
  select xid, null::integer as provider_id, consumer as uuid, case
      when consumer is null or exists (select from allocations where consumer_id = consumer) then ${sql.lit(consumersBit)}
      else parts | ${sql.lit(goneBit)} end as bits, null::integer[] as ids, logged_at
    from (
      select *, sum(cardinality(consumer_ids)) over () as count from ${changes}
      where provider_id is null and whole and parts >= ${sql.lit(consumersBit)}
    ) as logged cross join lateral unnest(
      case when consumer_ids is null or count > ${sql.lit(mostConsumers)} then array[null]::varchar[] else consumer_ids end
    ) as consumer`;

/** Which providers changed since a snapshot, for the case that they are too many to read them by the same statement. */
type ChangedIds = {
  readonly pgSnapshot: string;
  /** The newest transaction of which the log has changes since then; null if there are none. */
  readonly lastXid: string | null;
  /** The newest transaction in the log of inventory changes, which may be an older one; null if that log is empty. */
  readonly lastInventoryXid: string | null;
  /** The log may lack changes, or a table was truncated: load everything. */
  readonly reload: boolean;
  /** Ascending; null if there are none. */
  readonly ids: readonly number[] | null;
  readonly areNamesChanged: boolean;
  readonly areLimitsChanged: boolean;
};

/** Only ids that are multiples of this number are counted. */
const everyNth = 16;

/**
 * Whether more providers than about `most` changed since a snapshot. It is estimated by a part of the ids: to list a
 * million ids takes a second, and is in vain if everything is loaded then.
 */
export async function didMostChange(trx: Transaction<Tables>, since: FleetSnapshot, most: number): Promise<boolean> {
  const { yes } = await onlyRow(
    trx,
    sql<{ yes: boolean }>`select count(distinct provider_id) > ${most / everyNth}::float8 as yes
      from (${changesSince(since)}) as log where provider_id % ${sql.lit(everyNth)} = 0`,
  );
  return yes;
}

/** The ids of the providers that changed since a snapshot, and whether names of traits or classes did. */
export const readChangedIds = (trx: Transaction<Tables>, since: FleetSnapshot): Promise<ChangedIds> =>
  onlyRow(
    trx,
    sql<ChangedIds>`
    with changes as materialized (
      select xid, provider_id, whole, parts from (${changesSince(since)}) as log
    )
    select pg_current_snapshot()::text as "pgSnapshot",
      ${lastXid} as "lastXid", ${newestIn('inventory_changes')}::text as "lastInventoryXid",
      exists (select from changes where provider_id is null and not whole) or ${isLogTooShort(since)} as reload,
      (select json_agg(distinct provider_id order by provider_id) from changes where provider_id is not null) as ids,
      exists (select from changes where ${areNames}) as "areNamesChanged",
      exists (select from changes where ${areLimits}) as "areLimitsChanged"`,
  );

/** All names of traits and resource classes. */
export const readNames = (trx: Transaction<Tables>) =>
  onlyRow(
    trx,
    sql<{ traitNames: NameRow[]; classNames: NameRow[] }>`select ${listOf(selectTraitNames)} as "traitNames",
      ${listOf(selectClassNames)} as "classNames"`,
  );

/** All limits. */
export const readLimitRows = async (trx: Transaction<Tables>): Promise<LimitRows> =>
  (await onlyRow(trx, sql<{ limits: LimitRows }>`select ${limitRows} as limits`)).limits;

/** What was read of a part of the log. */
type ReadParts = {
  /** Another run of the server answered: the snapshot is not of this run. */
  readonly isOtherRun: boolean;
  /** The log does not go back so far, a table was truncated, or there are too many rows. */
  readonly isGone: boolean;
  /** Null if there are none. */
  readonly changedParts: readonly ChangedParts[] | null;
};

/** How many rows of the log are read for one client at most: about 0.2 s. */
const mostRows = 200_000;

/**
 * Reads which parts changed between two points of the log, for a client that sends an old token.
 *
 * @param from the rows that were read at this point are left out
 * @param until the rows of transactions that this snapshot does not see are left out
 * @param bits the parts that the client requests
 * @param most how many providers are read at most; if there are more, `isGone` is true
 */
export const readChangedParts = (
  { kysely }: Pick<Database, 'kysely'>,
  from: LogPoint,
  until: FleetSnapshot,
  { bits, most }: { readonly bits: number; readonly most: number },
): Promise<ReadParts> =>
  onlyRow(
    kysely,
    sql<ReadParts>`
    with changes as materialized (
      select * from (${changesSince(from)}) as since
      where pg_visible_in_snapshot(xid, ${until.pgSnapshot}::pg_snapshot) limit ${sql.lit(mostRows + 1)}
    ), reported as materialized (
      select provider_id, uuid, bit_or(bits) as bits, ids from (${selectChangedParts(sql`changes`)}) as rows
      where bits & ${bits}::integer <> 0 or provider_id is null or uuid is not null
      group by provider_id, uuid, ids limit ${most + 1}
    ), consumers as materialized (
      ${bits & consumersBit ? lastOfEach(from, most + 1) : noConsumers}
    )
    select ${serverRun} <> ${until.serverRun} as "isOtherRun",
      ${isPruned(from)} or exists (select from changes where provider_id is null and not whole)
        or exists (select from changes offset ${sql.lit(mostRows)})
        or (select count(*) > ${most}::bigint from reported) or (select count(*) > ${most}::bigint from consumers) as "isGone",
      (select json_agg(json_build_array(null, provider_id, uuid, bits, ids)) from (table reported union all table consumers) as rows) as "changedParts"`,
  );

/**
 * The last row of each consumer in the present snapshot. Rows that the client gets later are read as well: whether a consumer is gone is
 * read as of now, so the reason must be of the same snapshot.
 */
const lastOfEach = (from: LogPoint, most: number) =>
  sql`select distinct on (uuid) provider_id, uuid, bits, ids
      from (${selectChangedConsumers(sql`(select * from (${changesSince(from)}) as since limit ${sql.lit(mostRows + 1)}) as changes`)}) as rows
      order by uuid, logged_at desc, bits desc limit ${most}`;

const noConsumers = sql`select null::integer as provider_id, null::text as uuid, 0 as bits, null::integer[] as ids where false`;

/** Logs that any consumer may have changed, for clients that follow them. */
export async function noteAllConsumers(db: Kysely<Tables>): Promise<void> {
  await sql`insert into provider_changes (provider_id, whole, parts) values (null, true, ${sql.lit(consumersBit)})`.execute(
    db,
  );
}
