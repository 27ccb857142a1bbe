import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../db/connect.ts';
import { onlyRow } from '../../db/only_row.ts';
import { changesSince, isLogTooShort, type Moment } from '../../db/statements/change_log.ts';
import {
  type AggregateRow,
  type InventoryRow,
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

/** What changed since a snapshot, as a later one sees it. Lists are null where there is nothing in them. */
export type Changes = {
  readonly snapshot: string;
  /** The log does not tell all that changed, or a table was truncated: load everything. */
  readonly reload: boolean;
  /** Usages that moved; the arrays run in parallel. Not of providers in `whole`, whose inventories carry theirs. */
  readonly moved:
    | readonly { readonly provider: number; readonly classes: number[]; readonly deltas: number[] }[]
    | null;
  /** Providers whose row only got another generation, or other times. */
  readonly touched: readonly Pick<ProviderRow, 'id' | 'generation' | 'created' | 'updated'>[] | null;
  /** Ids to read anew; those not in `providers` are gone. */
  readonly whole: readonly number[] | null;
  readonly providers: readonly ProviderRow[] | null;
  readonly inventories: readonly InventoryRow[] | null;
  readonly traits: readonly TraitRow[] | null;
  readonly aggregates: readonly AggregateRow[] | null;
  /** Null unless names changed. */
  readonly traitNames: readonly NameRow[] | null;
  readonly classNames: readonly NameRow[] | null;
};

/** Asks, in one statement and so in one snapshot, for everything that changed since an earlier one. */
export const readChanges = ({ kysely }: Database, since: Moment): Promise<Changes> =>
  onlyRow(
    kysely,
    sql<Changes>`
    with changes as materialized (${changesSince(since)}
    ), whole as (
      select distinct provider_id as id from changes where whole and provider_id is not null
    ), moved as (
      select * from changes where not whole and provider_id is not null and provider_id not in (select id from whole)
    )
    select pg_current_snapshot()::text as snapshot,
      exists (select from changes where provider_id is null and not whole)
        or ${isLogTooShort(since)} as reload,
      ${listOf(sql`select provider_id as provider, class_ids as classes, used_deltas as deltas from moved
        where class_ids is not null`)} as moved,
      ${listOf(sql`select id, generation, created, updated
        from (${ofEach(sql`(select distinct provider_id as id from moved)`, sql`${selectProviders} where id = changed.id`)}) as p`)}
        as touched,
      (select json_agg(id) from whole) as whole,
      ${listOf(ofEach(sql`whole`, sql`${selectProviders} where id = changed.id`))} as providers,
      ${listOf(ofEach(sql`whole`, sql`${selectInventories} where i.resource_provider_id = changed.id`))} as inventories,
      ${listOf(ofEach(sql`whole`, sql`${selectTraits} where resource_provider_id = changed.id`))} as traits,
      ${listOf(ofEach(sql`whole`, sql`${selectAggregates} where m.resource_provider_id = changed.id order by a.id`))}
        as aggregates,
      ${ifNamesChanged(selectTraitNames)} as "traitNames",
      ${ifNamesChanged(selectClassNames)} as "classNames"`,
  );

/**
 * What a query finds for each changed provider by itself: behind OFFSET no plan joins it with a whole table, which takes 1 ms for
 * 1,000 providers and is chosen where the log was long when its statistics were made.
 */
const ofEach = (providers: RawBuilder<unknown>, query: RawBuilder<unknown>) =>
  sql`select found.* from ${providers} as changed cross join lateral (${query} offset 0) as found`;

const ifNamesChanged = (query: RawBuilder<unknown>) =>
  sql`case when exists (select from changes where provider_id is null and whole) then ${listOf(query)} end`;
