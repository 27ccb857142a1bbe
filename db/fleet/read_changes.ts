import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { isReadOnly } from '../engine/failures.ts';
import { onlyRow } from '../engine/only_row.ts';
import { changesSince, type FleetSnapshot, isLogTooShort, lastXid, newestIn } from './change_log.ts';
import { areLimits, areNames, type ChangedParts, selectChangedConsumers, selectChangedParts } from './changed_parts.ts';
import {
  type AggregateRow,
  type InventoryRow,
  type LimitRows,
  limitRows,
  listOf,
  type NameRow,
  type ProviderRow,
  selectAggregates,
  selectClassNames,
  selectInventories,
  selectProviders,
  selectTraitNames,
  selectTraits,
  type TraitRow,
} from './rows.ts';

/** Whether something changed since a snapshot, as of a later one. */
type ChangeCheck = {
  readonly pgSnapshot: string;
  /** Whether the log has changes, or may lack some: then `readChanges` reads which. */
  readonly hasChanged: boolean;
};

/**
 * Checks whether something changed since a snapshot. PostgreSQL takes a quarter of the time that it takes to prepare and run
 * the statement of `readChanges`, which has a part for each kind of change.
 */
export const checkForChanges = ({ kysely }: Pick<Database, 'kysely'>, since: FleetSnapshot): Promise<ChangeCheck> =>
  onlyRow(
    kysely,
    sql<ChangeCheck>`select pg_current_snapshot()::text as "pgSnapshot",
      exists (select from (${changesSince(since)}) as log) or ${isLogTooShort(since)} as "hasChanged"`,
  );

/** What changed since a snapshot, as a later snapshot sees it. A list without items is null. */
export type Changes = {
  readonly pgSnapshot: string;
  /** The newest transaction of which the log has changes since then; null if there are none. */
  readonly lastXid: string | null;
  /** The newest transaction in the log of inventory changes, which may be an older one; null if that log is empty. */
  readonly lastInventoryXid: string | null;
  /** Which parts changed, for clients that follow; null if none changed, or if the parts were not requested. */
  readonly changedParts: readonly ChangedParts[] | null;
  /** The log may lack changes, or a table was truncated: load everything. */
  readonly reload: boolean;
  /** There are more changes than these: see src/fleet/keep/load.ts. */
  readonly isMuch: boolean;
  /**
   * Changes of usages, as parallel arrays, without the providers in `whole`, whose inventories contain their usages.
   */
  readonly moved:
    | readonly { readonly provider: number; readonly classes: number[]; readonly deltas: number[] }[]
    | null;
  /** Providers of which only the generation or the times in their row changed. */
  readonly touched: readonly Pick<ProviderRow, 'id' | 'generation' | 'created' | 'updated'>[] | null;
  /** Ids of providers that were read again as a whole; ids that are not in `providers` are deleted. */
  readonly whole: readonly number[] | null;
  readonly providers: readonly ProviderRow[] | null;
  readonly inventories: readonly InventoryRow[] | null;
  readonly traits: readonly TraitRow[] | null;
  readonly aggregates: readonly AggregateRow[] | null;
  /** Null unless names changed. */
  readonly traitNames: readonly NameRow[] | null;
  readonly classNames: readonly NameRow[] | null;
  /** Null unless limits changed. */
  readonly limits: LimitRows | null;
};

/**
 * How many rows of the log one statement reads, and how many providers it reads as a whole: in 0.1 s at most. Changes of usages are
 * most of the rows, and take a tenth of the time of a provider that is read as a whole. With 3,000 rows as the limit, a process
 * would read thousands of providers as a whole, with the usages of all their allocations, twice a second while terms end.
 */
const mostRows = 12_000;
const mostWhole = 3_000;

/**
 * Reads everything that changed since an earlier snapshot by one statement, and so in one snapshot, unless too much
 * changed.
 *
 * @param options.withParts whether to read which parts changed
 */
export const readChanges = (
  { kysely }: Database,
  since: FleetSnapshot,
  { withParts = false }: { readonly withParts?: boolean } = {},
): Promise<Changes> =>
  onlyRow(
    kysely,
    sql<Changes>`
    with changes as materialized (
      select * from (${changesSince(since)}) as since limit ${sql.lit(mostRows + 1)}
    ), whole as (
      select distinct provider_id as id from changes where whole and provider_id is not null limit ${sql.lit(mostWhole + 1)}
    ), moved as (
      select * from changes where not whole and provider_id is not null and provider_id not in (select id from whole)
    )
    select pg_current_snapshot()::text as "pgSnapshot",
      ${lastXid} as "lastXid",
      ${newestIn('inventory_changes')}::text as "lastInventoryXid",
      ${withParts ? changedParts : sql`null`} as "changedParts",
      exists (select from changes where provider_id is null and not whole)
        or ${isLogTooShort(since)} as reload,
      exists (select from changes offset ${sql.lit(mostRows)})
        or exists (select from whole offset ${sql.lit(mostWhole)}) as "isMuch",
      ${listOf(sql`select provider_id as provider, class_ids as classes, used_deltas as deltas from moved
        where class_ids is not null`)} as moved,
      ${listOf(sql`select id, generation, created, updated
        from (${ofEach(sql`(select distinct provider_id as id from moved where ${mayBeRaised})`, sql`${selectProviders} where id = changed.id`)}) as p`)}
        as touched,
      (select json_agg(id) from whole) as whole,
      ${listOf(ofEach(sql`whole`, sql`${selectProviders} where id = changed.id`))} as providers,
      ${listOf(ofEach(sql`whole`, sql`${selectInventories} where i.resource_provider_id = changed.id`))} as inventories,
      ${listOf(ofEach(sql`whole`, sql`${selectTraits} where resource_provider_id = changed.id`))} as traits,
      ${listOf(ofEach(sql`whole`, sql`${selectAggregates} where m.resource_provider_id = changed.id order by a.id`))}
        as aggregates,
      ${ifNamesChanged(selectTraitNames)} as "traitNames",
      ${ifNamesChanged(selectClassNames)} as "classNames",
      case when exists (select from changes where ${areLimits}) then ${limitRows} end as limits`,
  );

/**
 * Whether the row of a provider may have changed: the log has a row about it, or the usage grows by a claim, which raises the
 * generation (migration 006). Usages that only shrink change nothing else.
 */
const mayBeRaised = sql`(class_ids is null or 0 < any(used_deltas))`;

const changedParts = sql`(select json_agg(json_build_array(xid::text, provider_id, uuid, bits, ids) order by logged_at, bits)
        from (select *, null::timestamptz as logged_at from (${selectChangedParts(sql`changes`)}) as parts
          union all ${selectChangedConsumers(sql`changes`)}) as rows)`;

/**
 * Runs a query for each changed provider separately. The OFFSET keeps the planner from joining the query with a whole
 * table, which takes 1 ms for 1,000 providers. The planner would do so if the log was long when its statistics were
 * made.
 */
const ofEach = (providers: RawBuilder<unknown>, query: RawBuilder<unknown>) =>
  sql`select found.* from ${providers} as changed cross join lateral (${query} offset 0) as found`;

const ifNamesChanged = (query: RawBuilder<unknown>) =>
  sql`case when exists (select from changes where ${areNames}) then ${listOf(query)} end`;

/**
 * Deletes logged changes of transactions that have not begun on this server. Only a dump of another server can have
 * brought such rows, and every refresh would take them for new; visible changes of this server are below the snapshot's
 * xmax. A dump may also lack the row of the horizon: this row is inserted, because without it every refresh would load
 * everything.
 *
 * Where `default_transaction_read_only` is on, nothing is done, so that reads are served: they are correct, and only slower where there are
 * such rows.
 *
 * @throws `readOnlyTransaction` on a standby, which may lack changes that were read already
 */
export async function forgetForeignChanges(database: Database): Promise<void> {
  try {
    await forget(database);
  } catch (error) {
    if (!isReadOnly(error)) throw error;
    const recovery = sql<{ readonly isStandby: boolean }>`select pg_is_in_recovery() as "isStandby"`;
    if ((await onlyRow(database.kysely, recovery)).isStandby) throw error;
  }
}

async function forget({ kysely }: Database): Promise<void> {
  await sql`
    with foreign_changes as (
      delete from provider_changes where xid >= pg_snapshot_xmax(pg_current_snapshot())
    ), foreign_inventory_changes as (
      delete from inventory_changes where xid >= pg_snapshot_xmax(pg_current_snapshot())
    ), corrected as (
      update provider_changes_horizon set xid = pg_current_xact_id()
      where xid >= pg_snapshot_xmax(pg_current_snapshot())
    )
    insert into provider_changes_horizon
    select pg_current_xact_id() where not exists (select from provider_changes_horizon)`.execute(kysely);
}
