import { sql, type Transaction } from 'kysely';
import { onlyRow } from '../engine/only_row.ts';
import type { Tables } from '../schema/tables.ts';
import { changesSince, isLogTooShort, type Moment } from './change_log.ts';
import { listOf, type NameRow, selectClassNames, selectTraitNames } from './rows.ts';

/** Which providers changed since a moment, for the case that they are too many to read them by the same statement. */
export type ChangedIds = {
  readonly snapshot: string;
  /** The newest transaction of which the log has changes since then; null if there are none. */
  readonly lastXid: string | null;
  readonly reload: boolean;
  /** Ascending; null if there are none. */
  readonly ids: readonly number[] | null;
  readonly areNamesChanged: boolean;
};

/** @param most if more providers than this changed, the result is only `reload` */
export const readChangedIds = (trx: Transaction<Tables>, since: Moment, most: number): Promise<ChangedIds> =>
  onlyRow(
    trx,
    sql<ChangedIds>`
    with changes as materialized (${changesSince(since)}
    ), changed as materialized (
      select distinct provider_id as id from changes where provider_id is not null
    ), much as materialized (
      select count(*) > ${most}::float8 as yes from changed
    )
    select pg_current_snapshot()::text as snapshot,
      (select xid::text from changes order by xid desc limit 1) as "lastXid",
      (select yes from much) or exists (select from changes where provider_id is null and not whole)
        or ${isLogTooShort(since)} as reload,
      (select json_agg(id order by id) from changed where not (select yes from much)) as ids,
      exists (select from changes where provider_id is null and whole) as "areNamesChanged"`,
  );

/** All names of traits and resource classes. */
export const readNames = (trx: Transaction<Tables>) =>
  onlyRow(
    trx,
    sql<{ traitNames: NameRow[]; classNames: NameRow[] }>`select ${listOf(selectTraitNames)} as "traitNames",
      ${listOf(selectClassNames)} as "classNames"`,
  );
