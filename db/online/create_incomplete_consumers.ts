import { sql } from 'kysely';
import type { Database } from '../connect.ts';
import { ensureOwners } from '../statements/ensure_owners.ts';
import { utcNow } from '../utc_now.ts';
import { givingWay } from './give_way.ts';
import type { OnlineMigration } from './online_migration.ts';

/** Whom consumers belong to whose project and user nobody ever said. */
export type IncompleteOwner = { readonly projectId: string; readonly userId: string };

/** How many allocations one query looks through for consumers that are missing. */
const windowSize = 10_000;

/**
 * Gives allocations from before microversion 1.8 a consumer record, with the configured project and user and generation 0.
 *
 * Allocations are looked through once, in the order of their consumers and a window at a time, and what is found waits in
 * memory for the batches: each batch costs its own rows only. Having come to the end it starts over, until a whole pass
 * finds nothing: nobody makes such allocations any more, so that is enough for all batches of the others.
 */
export function createIncompleteConsumers(database: Database, owner: IncompleteOwner): OnlineMigration {
  let waiting: readonly string[] = [];
  let after: string | undefined;
  let ownerExists = false;
  let finished = false;

  /** Fills `waiting`; false where a pass over all allocations, from the beginning, found nothing. */
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
        const created = await givingWay(database, createConsumers(owner, batch));
        waiting = waiting.slice(batch.length);
        // The others of the batch have a record by now, or no allocations any more: a request was faster.
        done += created.length;
      }
      return { found: done, done };
    },
  };
}

type Window = {
  /** The last consumer of the window; null where it is empty. */
  readonly last: string | null;
  readonly missing: readonly string[];
};

async function readWindow({ kysely }: Database, after: string | undefined): Promise<Window> {
  const rest = after === undefined ? sql`` : sql`where consumer_id > ${after}`;
  const { rows } = await sql<Window>`
    with seen as materialized (
      select consumer_id from allocations ${rest} order by consumer_id limit ${sql.lit(windowSize)}
    )
    select (select consumer_id from seen order by consumer_id desc limit 1) as last, array(
      select distinct consumer_id from seen
      where not exists (select from consumers c where c.uuid = seen.consumer_id) order by consumer_id
    ) as missing`.execute(kysely);
  return rows[0] ?? { last: null, missing: [] };
}

/**
 * The allocations are locked against being deleted meanwhile, and those deleted already count no more: no consumer is left
 * without any. Each consumer is looked up by itself, so that no plan reads the whole table, however old its statistics are.
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
