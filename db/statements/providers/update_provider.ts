import { sql } from 'kysely';
import type { Database } from '../../engine/connect.ts';
import { utcNow } from '../../engine/time.ts';
import { lockChangedTrees } from '../relied_locks.ts';
import {
  type ChangeOutcome,
  changedNodes,
  changeOutcome,
  isAsJudged,
  type JudgedNode,
  type JudgedRow,
} from './judged_provider.ts';

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

/**
 * Sets the parent and the name of a provider, and the root of its whole subtree.
 *
 * The caller has judged that the move makes no loop, by the present parents in the old and the new tree. The first
 * statement locks all providers of these trees in the order of their ids, so that none of them can get a child or
 * another parent. The second statement sees every child that was committed before the lock, and changes nothing if the
 * parents have changed: then the outcome is `changed`. The lock allows foreign keys to the rows, since a new child
 * elsewhere in the tree refers to the root.
 */
export function moveProvider(
  { write }: Pick<Database, 'write'>,
  move: JudgedRow & {
    readonly name: string;
    readonly parentId: number | null;
    readonly rootId: number;
    readonly subtreeIds: readonly number[];
    /** All providers of the old and the new tree. */
    readonly judged: readonly JudgedNode[];
  },
): Promise<ChangeOutcome> {
  const ids = move.judged.map((node) => node.id);
  const lock = sql`select id from resource_providers where id = any(${ids}::integer[]) order by id for no key update`;
  const change = sql`
    with ${changedNodes(move.judged)}
    update resource_providers set
      name = case when id = ${move.id} then ${move.name}::text else name end,
      parent_provider_id = case when id = ${move.id} then ${move.parentId}::integer else parent_provider_id end,
      root_provider_id = ${move.rootId}::integer,
      updated_at = ${utcNow}
    where id = any(${move.subtreeIds}::integer[]) and not exists (select from changed)
      and exists (select from resource_providers p where p.id = ${move.id} and ${isAsJudged(move)})
    returning id`;
  const lockTrees = lockChangedTrees(sql`id = any(${[move.id, move.parentId ?? move.id]}::integer[])`);
  return changeOutcome(write([lock, lockTrees, change]).then(([, , rows]) => rows.length > 0));
}
