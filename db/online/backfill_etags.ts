import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../connect.ts';
import { givingWay } from './give_way.ts';
import type { OnlineMigration } from './online_migration.ts';

/**
 * Gives rows from before migration 004 their entity tags. Each table is gone through by id, and again from the beginning until
 * a pass finds nothing, since other migrations may bring rows meanwhile.
 *
 * Whoever changes a row meanwhile gives it its tag, by himself or by the triggers of migration 004, and has the last word: the rows
 * are locked before it is looked whether they have none, and a tag that is there is never replaced.
 */
export function backfillEtags(database: Database): OnlineMigration {
  let place = 0;
  let after = 0;
  let doneInPass = 0;
  let finished = false;
  const next = (): void => {
    after = 0;
    place = (place + 1) % steps.length;
    if (place > 0) return;
    finished = doneInPass === 0;
    doneInPass = 0;
  };
  return {
    name: 'backfill_etags',
    runBatch: async (maxCount) => {
      let done = 0;
      while (done < maxCount && !finished) {
        const step = steps[place];
        if (step === undefined) throw new Error('The place is that of a step.');
        const [batch] = await givingWay(database, sql<Batch>`${step(after, maxCount - done)}`);
        done += batch?.done ?? 0;
        doneInPass += batch?.done ?? 0;
        if (batch === undefined || batch.last === null) next();
        else after = batch.last;
      }
      return { found: done, done };
    },
  };
}

type Batch = {
  readonly done: number;
  /** The highest id that was looked at; null where there is none left. */
  readonly last: number | null;
};

/*
 * What is looked up beside a row is looked up for each row by itself: a join could read whole tables for every batch.
 */

/** The commit need not wait for the disk: tags that a crash loses are computed again. Batches are small, and would wait most of the time. */
const isCommittedLate = sql`(select set_config('synchronous_commit', 'off', true)) is not null`;

type Step = (after: number, limit: number) => RawBuilder<unknown>;

/** @param tag the tag of a row, where it gets one */
const ofRows =
  (table: string, tag: string, condition = 'true'): Step =>
  (after, limit) =>
    sql`
    with old as materialized (
      select id from ${sql.table(table)} where etag is null and ${sql.raw(condition)} and id > ${after}
      order by id limit ${sql.lit(limit)} for update
    ), tagged as (
      update ${sql.table(table)} as r set etag = ${sql.raw(tag)} from old where r.id = old.id returning r.etag
    )
    select (select count(etag)::integer from tagged) as done, (select max(id) from old) as last
    where (select set_config('placement.etags', 'only', true)) is not null -- there is no other change to log
      and ${isCommittedLate}`;

/** Providers, whose tags have a table of their own. */
const ofProviders: Step = (after, limit) => sql`
  with old as materialized (
    select p.id from resource_providers p
    where p.id > ${after} and (
      select e.provider is not null and e.inventories is not null and e.traits is not null and e.aggregates is not null
      from resource_provider_etags e where e.resource_provider_id = p.id
    ) is not true order by p.id limit ${sql.lit(limit)}
  ), tagged as (
    insert into resource_provider_etags as e (resource_provider_id, provider, inventories, traits, aggregates)
    select p.id, etag_of_provider(p), etag_of_inventories(p.id), etag_of_traits(p.id), etag_of_aggregates(p.id)
    from resource_providers p join old using (id) order by p.id
    on conflict (resource_provider_id) do update set provider = coalesce(e.provider, excluded.provider),
      inventories = coalesce(e.inventories, excluded.inventories), traits = coalesce(e.traits, excluded.traits),
      aggregates = coalesce(e.aggregates, excluded.aggregates)
    returning resource_provider_id
  )
  select (select count(*)::integer from tagged) as done, (select max(id) from old) as last where ${isCommittedLate}`;

const isCustom = `name like 'CUSTOM\\_%'`;

const steps: readonly Step[] = [
  ofRows('resource_classes', 'etag_name(r.name)', isCustom),
  ofRows('traits', 'etag_name(r.name)', isCustom),
  ofRows('inventories', 'etag_of(etag_inventory(r))'),
  ofProviders,
  // Those without allocations, which are not there for clients, get none.
  ofRows('consumers', 'etag_of_allocations(r)', '(select true from allocations a where a.consumer_id = uuid limit 1)'),
];
