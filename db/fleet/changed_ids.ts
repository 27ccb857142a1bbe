import { sql, type Transaction } from 'kysely';
import { onlyRow } from '../engine/only_row.ts';
import type { Tables } from '../schema/tables.ts';
import { changesSince, isLogTooShort, lastXid, type Moment, newestIn } from './change_log.ts';
import { listOf, type NameRow, selectClassNames, selectTraitNames } from './rows.ts';

/** Which providers changed since a moment, for the case that they are too many to read them by the same statement. */
export type ChangedIds = {
  readonly snapshot: string;
  /** The newest transaction of which the log has changes since then; null if there are none. */
  readonly lastXid: string | null;
  /** The newest transaction in the log of inventory changes, which may be an older one; null if that log is empty. */
  readonly lastInventoryXid: string | null;
  /** The log may lack changes, or a table was truncated: load everything. */
  readonly reload: boolean;
  /** Ascending; null if there are none. */
  readonly ids: readonly number[] | null;
  readonly areNamesChanged: boolean;
};

/** Only ids that are multiples of this number are counted. */
const everyNth = 16;

/**
 * Whether more providers than about `most` changed since a moment. It is estimated by a part of the ids: to list a
 * million ids takes a second, and is in vain if everything is loaded then.
 */
export async function didMostChange(trx: Transaction<Tables>, since: Moment, most: number): Promise<boolean> {
  const { yes } = await onlyRow(
    trx,
    sql<{ yes: boolean }>`select count(distinct provider_id) > ${most / everyNth}::float8 as yes
      from (${changesSince(since)}) as log where provider_id % ${sql.lit(everyNth)} = 0`,
  );
  return yes;
}

/** The ids of the providers that changed since a moment, and whether names of traits or classes did. */
export const readChangedIds = (trx: Transaction<Tables>, since: Moment): Promise<ChangedIds> =>
  onlyRow(
    trx,
    sql<ChangedIds>`
    with changes as materialized (
      select xid, provider_id, whole from (${changesSince(since)}) as log
    )
    select pg_current_snapshot()::text as snapshot,
      ${lastXid} as "lastXid", ${newestIn('inventory_changes')}::text as "lastInventoryXid",
      exists (select from changes where provider_id is null and not whole) or ${isLogTooShort(since)} as reload,
      (select json_agg(distinct provider_id order by provider_id) from changes where provider_id is not null) as ids,
      exists (select from changes where provider_id is null and whole) as "areNamesChanged"`,
  );

/** All names of traits and resource classes. */
export const readNames = (trx: Transaction<Tables>) =>
  onlyRow(
    trx,
    sql<{ traitNames: NameRow[]; classNames: NameRow[] }>`select ${listOf(selectTraitNames)} as "traitNames",
      ${listOf(selectClassNames)} as "classNames"`,
  );
