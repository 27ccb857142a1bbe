import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { beforeAllIds, givingWay, idOf, type OnlineMigration } from './online_migration.ts';

/**
 * Sets the root of providers from before microversion 1.14: the provider that is reached by following parents, which
 * for most is the provider itself. A provider whose parents form a loop has no root: it counts as found, and not as
 * done.
 */
export function setRootProviderIds(database: Database): OnlineMigration {
  let after = beforeAllIds;
  // No program creates such providers any more: one pass is enough for all later batches.
  let finished = false;
  return {
    name: 'set_root_provider_ids',
    runBatch: async (maxCount) => {
      let found = 0;
      let done = 0;
      while (done < maxCount && !finished) {
        const [batch] = await givingWay(database, setRoots(after, maxCount - done));
        finished = batch === undefined || batch.last === null;
        if (batch === undefined || batch.last === null || batch.moved) continue;
        found += batch.found;
        done += batch.done;
        after = batch.last;
      }
      return { found, done };
    },
  };
}

type RootBatch = {
  readonly found: number;
  readonly done: number;
  /** The highest id of the batch; null if no row is left. */
  readonly last: number | null;
  /** A provider got another parent meanwhile, so nothing was done. */
  readonly moved: boolean;
};

/**
 * First reads the ancestors of each provider, then locks all of these rows in the order of their ids, as a move of a
 * provider does. If a parent has changed in between, nothing is written and the batch must be repeated.
 */
const setRoots = (after: number, limit: number) =>
  sql<RootBatch>`
    with recursive rootless as materialized (
      select id from resource_providers where root_provider_id is null and id > ${idOf(after)} order by id limit ${sql.lit(limit)}
    ), way (id, node, parent) as (
      select p.id, p.id, p.parent_provider_id from resource_providers p join rootless using (id)
      union all
      select way.id, p.id, p.parent_provider_id from way join resource_providers p on p.id = way.parent
    ) cycle node set looped using path,
    locked as materialized (
      select id, parent_provider_id from resource_providers where id in (select node from way)
      order by id for no key update
    ), moved as (
      select from way left join locked on locked.id = way.node
      where locked.id is null or locked.parent_provider_id is distinct from way.parent
    ), updated as (
      update resource_providers p set root_provider_id = way.node from way
      where p.id = way.id and way.parent is null and p.root_provider_id is null and not exists (select from moved)
      returning p.id
    )
    select (select count(*)::integer from rootless) as found, (select count(*)::integer from updated) as done,
      (select max(id) from rootless) as last, exists (select from moved) as moved`;
