import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { onlyRow } from '../engine/only_row.ts';
import { serverRun } from '../engine/server_run.ts';
import { changesSince, isPruned, type LogPoint, type Moment } from './change_log.ts';
import { type ChangedParts, selectChangedParts } from './changed_parts.ts';

/** What a part of the log tells. */
export type ReadParts = {
  /** Another run of the server answered: the moment is none of it. */
  readonly isOtherRun: boolean;
  /** The log does not go back so far, a table was truncated, or there are too many rows. */
  readonly isGone: boolean;
  /** Null if there are none. */
  readonly told: readonly ChangedParts[] | null;
};

/** How many rows of the log are read for one client at most: about 0.2 s. */
const mostRows = 200_000;

/**
 * Reads which parts changed between two points of the log, for a client that comes with an old token.
 *
 * @param from the rows that were read at this point are left out
 * @param until the rows of transactions that the snapshot of this moment does not see are left out
 * @param bits the parts that the client asks for
 * @param most how many providers are told at most; if there are more, `isGone` is true
 */
export const readChangedParts = (
  { kysely }: Pick<Database, 'kysely'>,
  from: LogPoint,
  until: Moment,
  { bits, most }: { readonly bits: number; readonly most: number },
): Promise<ReadParts> =>
  onlyRow(
    kysely,
    sql<ReadParts>`
    with changes as materialized (
      select * from (${changesSince(from)}) as since
      where pg_visible_in_snapshot(xid, ${until.snapshot}::pg_snapshot) limit ${sql.lit(mostRows + 1)}
    ), told as materialized (
      select provider_id, uuid, bit_or(bits) as bits, ids from (${selectChangedParts(sql`changes`)}) as rows
      where bits & ${bits}::integer <> 0 or provider_id is null
      group by provider_id, uuid, ids limit ${most + 1}
    )
    select ${serverRun} <> ${until.serverRun} as "isOtherRun",
      ${isPruned(from)} or exists (select from changes where provider_id is null and not whole)
        or exists (select from changes offset ${sql.lit(mostRows)}) or (select count(*) > ${most}::bigint from told) as "isGone",
      (select json_agg(json_build_array(null, provider_id, uuid, bits, ids)) from told) as told`,
  );
