import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { utcNow } from '../../engine/utc_now.ts';
import { type ChangeOutcome, changeOutcome } from './change_outcome.ts';
import { isAsJudged, type JudgedRow } from './seen_provider.ts';

/**
 * Renames a provider. If it already has the name, nothing is written, not even updated_at.
 *
 * @returns `changed` if the provider was deleted, or is not as it was judged.
 */
export function renameProvider(
  { write }: Pick<Database, 'write'>,
  judged: JudgedRow,
  name: string,
): Promise<ChangeOutcome> {
  // The lock is only needed to compare the row with what was seen, which may change while the statement waits for the
  // row.
  const lock = judged.seen === undefined ? sql`` : sql`for no key update`;
  const statement = sql`
    with judged as materialized (
      select p.id from resource_providers p where p.id = ${judged.id} and ${isAsJudged(judged)} ${lock}
    ), renamed as (
      update resource_providers p set name = ${name}, updated_at = ${utcNow} from judged
      where p.id = judged.id and p.name is distinct from ${name}
    )
    select id from judged`;
  return changeOutcome(write([statement]).then(([rows]) => rows.length === 1));
}
