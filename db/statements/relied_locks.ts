import { type RawBuilder, sql } from 'kysely';

/*
 * Locks of what claims rely on without locking its rows: the other providers of a tree, and the names of classes and traits. Claims share
 * such a lock, from before they check for changes until their commit; a change has the lock alone until its own commit. Otherwise a change
 * could be committed between the check and the commit of a claim: another request could then see the change and not the claim, although
 * the claim was judged by what was there before the change.
 *
 * All transactions lock the rows of providers before the trees, the rows of classes and traits before their names, and the names before the
 * rows of consumers: so no such lock is held while a transaction waits for a row that another program has locked for long. Changes that
 * other programs write take none of these locks.
 */

/** How many locks all trees, classes or traits share: a transaction may need many locks, and the server has room for a few thousand. */
const locks = 1024;
/** The first keys of the locks; the second one is the id of the root, class or trait, modulo `locks`. */
const keys = { tree: 1_500_000, class: 1_510_000, trait: 1_520_000 } as const;

const numbersOf = (ids: readonly number[]): readonly number[] =>
  [...new Set(ids.map((id) => id % locks))].sort((a, b) => a - b);

/**
 * Locks trees until the end of the transaction. A later statement checks whether the trees are as they were.
 *
 * @param relied the ids of the roots of trees that the transaction relies on
 * @param changed which rows of `resource_providers`, locked already, the transaction changes: it locks their trees for itself alone
 */
export const lockTrees = (relied: readonly number[], changed: RawBuilder<unknown>): RawBuilder<unknown> => sql`
  select case when changes then pg_advisory_xact_lock(${sql.lit(keys.tree)}, number)
    else pg_advisory_xact_lock_shared(${sql.lit(keys.tree)}, number) end
  from (
    select number, bool_or(changes) as changes from (
      select number, false as changes from unnest(${numbersOf(relied)}::integer[]) as number
      union all ${changedTrees(changed)}
    ) as each group by number order by number offset 0
  ) as tree`;

/** Locks the trees of some rows of `resource_providers` for a change. @param changed which rows, as above */
export const lockChangedTrees = (changed: RawBuilder<unknown>): RawBuilder<unknown> => lockTrees([], changed);

/** Roots are found by the parents, as the fleet finds them: a stored root may be null, or the root of another tree. */
const changedTrees = (condition: RawBuilder<unknown>) => sql`
  select case when parent_provider_id is null then id else coalesce((
      with recursive above as (
        select p.id, p.parent_provider_id
        union select q.id, q.parent_provider_id from above join resource_providers q on q.id = above.parent_provider_id
      ) select id from above where parent_provider_id is null
    ), root_provider_id, id) end % ${sql.lit(locks)} as number, true as changes
  from resource_providers p where ${condition}`;

/** Locks a class or a trait for a change of its name, or its deletion. */
export const lockChangedName = (kind: 'class' | 'trait', id: number): RawBuilder<unknown> =>
  sql`select pg_advisory_xact_lock(${sql.lit(keys[kind])}, ${id % locks}::integer)`;

/** Shares the locks of classes or traits. @param condition evaluated before the first lock */
export const sharedLocks = (
  kind: 'class' | 'trait',
  ids: readonly number[],
  condition: RawBuilder<unknown> = sql``,
): RawBuilder<unknown> =>
  sql`select pg_advisory_xact_lock_shared(${sql.lit(keys[kind])}, number) from unnest(${numbersOf(ids)}::integer[]) as number ${condition}`;
