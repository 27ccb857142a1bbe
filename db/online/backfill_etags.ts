import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../engine/connect.ts';
import { onlyRow } from '../engine/only_row.ts';
import { beforeAllIds, givingWay, idOf, type OnlineMigration } from './online_migration.ts';

/**
 * Adds entity tags to rows from before migration 004. It reads each table in the order of ids, and repeats this
 * until a whole pass finds no row without a tag, since other migrations may add rows meanwhile.
 *
 * A transaction that changes a row meanwhile writes the tag of the row, itself or by the triggers of migration 004.
 * Such a tag is never replaced by an older one: of most tables the rows are locked before the check that they have no tag; of providers
 * an existing tag is kept; of consumers the content is read after they are locked.
 */
export function backfillEtags(database: Database): OnlineMigration {
  let index = 0;
  let after = beforeAllIds;
  let doneInPass = 0;
  let finished = false;
  const next = (): void => {
    after = beforeAllIds;
    index = (index + 1) % steps.length;
    if (index > 0) return;
    finished = doneInPass === 0;
    doneInPass = 0;
  };
  return {
    name: 'backfill_etags',
    runBatch: async (maxCount) => {
      let done = 0;
      while (done < maxCount && !finished) {
        const step = steps[index];
        if (step === undefined) throw new Error(`There is no step ${index}.`);
        const batch = await step(database, after, maxCount - done);
        done += batch.done;
        doneInPass += batch.done;
        if (batch.last === null) next();
        else after = batch.last;
      }
      return { found: done, done };
    },
  };
}

type EtagBatch = {
  readonly done: number;
  /** The highest id of the batch; null if no row is left. */
  readonly last: number | null;
};

/*
 * Rows of other tables are looked up separately for each row: a join could read whole tables for every batch.
 */

/**
 * Lets the commit not wait for the disk: tags that are lost in a crash are computed again. The batches are small, and
 * would spend most of their time waiting. Transactions that write the change log must not be committed so: the number of a transaction
 * that others have read in the log must never be assigned again.
 */
const isCommittedLate = sql`(select set_config('synchronous_commit', 'off', true)) is not null`;

type EtagStep = (database: Database, after: number, limit: number) => Promise<EtagBatch>;

const noRows: EtagBatch = { done: 0, last: null };

/** A step of which each batch is one statement. */
const byStatement =
  (statement: (after: number, limit: number) => RawBuilder<unknown>): EtagStep =>
  async (database, after, limit) =>
    (await givingWay(database, sql<EtagBatch>`${statement(after, limit)}`))[0] ?? noRows;

/**
 * For tables of which each tag is of its row alone.
 *
 * @param tag SQL for the tag of row `r`
 * @param options.isLogged whether a trigger logs each update of the table
 */
const ofRows = (table: string, tag: string, { condition = 'true', isLogged = false } = {}): EtagStep =>
  byStatement(
    (after, limit) => sql`
    with old as materialized (
      select id from ${sql.table(table)} where etag is null and ${sql.raw(condition)} and id > ${idOf(after)}
      order by id limit ${sql.lit(limit)} for update
    ), tagged as (
      update ${sql.table(table)} as r set etag = ${sql.raw(tag)} from old where r.id = old.id returning r.etag
    )
    select (select count(etag)::integer from tagged) as done, (select max(id) from old) as last
    where (select set_config('placement.etags', 'only', true)) is not null -- there is no other change to log
      ${isLogged ? sql`` : sql`and ${isCommittedLate}`}`,
  );

/** For providers, whose tags are in a separate table. */
const ofProviders: EtagStep = byStatement(
  (after, limit) => sql`
  with old as materialized (
    select p.id from resource_providers p
    where p.id > ${idOf(after)} and (
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
  select (select count(*)::integer from tagged) as done, (select max(id) from old) as last where ${isCommittedLate}`,
);

/** Makes the tags of consumers: a function of the database locks the consumers, and reads their allocations then. */
export const tagConsumers = (uuids: readonly string[]): RawBuilder<unknown> =>
  sql`select etag_consumers(${uuids}::text[])`;

type Untagged = { readonly id: number; readonly uuid: string };

/**
 * For consumers. A tag is of allocations, which are read after the consumers are locked: another program may have changed them until then.
 * Consumers without allocations do not exist for clients, and get no tag.
 */
const ofConsumers: EtagStep = async (database, after, limit) => {
  const { kysely } = database;
  const { rows } = await sql<Untagged>`
    select id, uuid from consumers c
    where etag is null and id > ${idOf(after)} and (select true from allocations a where a.consumer_id = c.uuid limit 1)
    order by id limit ${sql.lit(limit)}`.execute(kysely);
  const last = rows.at(-1)?.id ?? null;
  if (last === null) return noRows;
  const uuids = rows.map(({ uuid }) => uuid);
  await givingWay(
    database,
    sql`select set_config('placement.etags', 'only', true) where ${isCommittedLate}`, // there is no other change to log
    tagConsumers(uuids),
  );
  const { done } = await onlyRow(
    kysely,
    sql<Pick<EtagBatch, 'done'>>`select count(etag)::integer as done from consumers where uuid = any(${uuids}::text[])`,
  );
  return { done, last };
};

const custom = { condition: `name like 'CUSTOM\\_%'`, isLogged: true };

const steps: readonly EtagStep[] = [
  ofRows('resource_classes', 'etag_name(r.name)', custom),
  ofRows('traits', 'etag_name(r.name)', custom),
  ofRows('inventories', 'etag_of(etag_inventory(r))'),
  ofProviders,
  ofConsumers,
];
