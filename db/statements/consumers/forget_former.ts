import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { onlyRow } from '../../engine/only_row.ts';

/** How many former consumers one statement looks at, in some 5 ms. */
const pageSize = 1000;

/**
 * Forgets former consumers that were removed long ago, one page of the table at a time. One whose UUID has a consumer now
 * stays, because the generation that clients know is counted from it. If a consumer is made while its former one is
 * forgotten, its generation goes back: then a client that has read it gets a conflict, and reads it again.
 *
 * @param after the UUID after which the page begins
 * @returns the last UUID of the page; undefined if it was the last page
 */
export async function forgetFormerConsumers(
  { kysely }: Pick<Database, 'kysely'>,
  after: string,
  keepSeconds: number,
): Promise<string | undefined> {
  // Rows are locked without waiting. One that was written meanwhile is looked at again: the consumer was removed again.
  const { last, count } = await onlyRow(
    kysely,
    sql<{ readonly last: string | null; readonly count: number }>`
    with page as materialized (
      select uuid, removed_at from former_consumers where uuid > ${after}::text order by uuid limit ${sql.lit(pageSize)}
    ),
    old as materialized (
      select uuid from former_consumers f
      where uuid = any(array(select uuid from page where removed_at < now() - make_interval(secs => ${keepSeconds})))
        and removed_at < now() - make_interval(secs => ${keepSeconds})
        and not exists (select from consumers c where c.uuid = f.uuid offset 0)
      for update skip locked
    ),
    forgotten as (delete from former_consumers where uuid = any(array(select uuid from old)))
    select max(uuid) as last, count(*)::integer as count from page`,
  );
  return last !== null && count === pageSize ? last : undefined;
}
