import { sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { onlyRow } from '../engine/only_row.ts';
import { utcNow } from '../engine/time.ts';
import { ensureOwners } from '../statements/claims/ensure_owners.ts';
import { tagConsumers } from './backfill_etags.ts';
import { givingWay, type OnlineMigration } from './online_migration.ts';

/** The configured project and user for consumers whose real ones were never recorded. */
export type IncompleteOwner = { readonly projectId: string; readonly userId: string };

/** How many allocations one query searches for consumers without a record. */
const windowSize = 10_000;

/**
 * Creates consumer records for allocations from before microversion 1.8, with the configured project and user and
 * generation 0.
 *
 * Allocations are searched in the order of their consumers, one window at a time. The consumers found wait in memory
 * for the batches, so that a batch reads no allocations twice. After the last window the search starts again, until a
 * whole pass finds none. Then it is finished for all later batches, since no program writes such allocations any more.
 */
export function createIncompleteConsumers(database: Database, owner: IncompleteOwner): OnlineMigration {
  let waiting: readonly string[] = [];
  let after: string | undefined;
  let ownerExists = false;
  let finished = false;

  /** Fills `waiting`. @returns false if a whole pass over all allocations found no consumer */
  const findMore = async (): Promise<boolean> => {
    let fromBeginning = after === undefined;
    while (waiting.length === 0) {
      const { last, missing } = await readWindow(database, after);
      waiting = missing;
      after = last ?? undefined;
      if (last !== null) continue;
      finished = fromBeginning;
      if (finished) return false;
      fromBeginning = true;
    }
    return true;
  };

  return {
    name: 'create_incomplete_consumers',
    runBatch: async (maxCount) => {
      let done = 0;
      while (done < maxCount && !finished && (await findMore())) {
        if (!ownerExists) {
          await ensureOwners(database, { projects: [owner.projectId], users: [owner.userId], types: [] });
          ownerExists = true;
        }
        const batch = waiting.slice(0, maxCount - done);
        // A trigger leaves a new record without an entity tag, since another program may write its allocations without seeing the record.
        const created = await givingWay(database, createConsumers(owner, batch), tagConsumers(batch));
        waiting = waiting.slice(batch.length);
        // A request has meanwhile created the other consumers of the batch, or deleted their allocations.
        done += created.length;
      }
      return { found: done, done };
    },
  };
}

type Window = {
  /** The last consumer of the window; null if the window is empty. */
  readonly last: string | null;
  readonly missing: readonly string[];
};

function readWindow({ kysely }: Database, after: string | undefined): Promise<Window> {
  const rest = after === undefined ? sql`` : sql`where consumer_id > ${after}`;
  const query = sql<Window>`
    with seen as materialized (
      select consumer_id from allocations ${rest} order by consumer_id limit ${sql.lit(windowSize)}
    )
    select (select consumer_id from seen order by consumer_id desc limit 1) as last, array(
      select distinct consumer_id from seen
      where not exists (select from consumers c where c.uuid = seen.consumer_id) order by consumer_id
    ) as missing`;
  return onlyRow(kysely, query);
}

/**
 * Locks the allocations, so that they cannot be deleted meanwhile. A consumer whose allocations are deleted already
 * gets no record: so no consumer without allocations is created. The allocations are looked up separately for each
 * consumer, so that no plan reads the whole table, however old its statistics are.
 */
const createConsumers = (owner: IncompleteOwner, uuids: readonly string[]) =>
  sql<{ readonly id: number }>`
    insert into consumers (uuid, project_id, user_id, generation, created_at)
    select distinct wanted.uuid, p.id, u.id, 0, ${utcNow}
    from unnest(${uuids}::text[]) as wanted (uuid)
    cross join lateral (
      select from allocations a where a.consumer_id = wanted.uuid order by a.id for key share
    ) as held
    cross join projects p cross join users u
    where p.external_id = ${owner.projectId} and u.external_id = ${owner.userId}
    order by 1 on conflict (uuid) do nothing returning id`;
