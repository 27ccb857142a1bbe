import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../db/engine/connect.ts';
import {
  closeRecords,
  type HeldPosition,
  switchHistoryOff,
  switchHistoryOn,
  takeInHeld,
} from '../../db/statements/usage_history.ts';
import type { Engine } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

/** The providers of a world; in each there is room for all that a test claims. */
export const hosts = ['1', '2', '3'].map((digit) => `00000000-0000-4000-8000-00000000000${digit}`);
export const [host1 = '', host2 = '', host3 = ''] = hosts;
export const classes = ['VCPU', 'MEMORY_MB', 'DISK_GB'];

/** A service with three providers, and its database. */
export type World = { readonly send: Send; readonly database: Database };

/** Calls back with a new world. */
export const withWorld = (engine: Engine, use: (world: World) => Promise<void>): Promise<void> =>
  withTestService(engine, {}, async (service) => {
    const send = requestsTo(service, 'placement 2.6');
    await makeHosts(send);
    await use({ send, database: service.database });
  });

/** Makes the three providers. */
export async function makeHosts(send: Send): Promise<void> {
  const inventories = Object.fromEntries(classes.map((name) => [name, { total: 1_000_000 }]));
  for (const host of hosts) await makeProvider(send, host, inventories);
}

/** The clock of the embedded engine counts milliseconds. Between two ticks a record would be empty. */
export const clockTick = (): Promise<void> => sleep(2);

/** Runs a statement as another program would. */
export async function run<Row>({ database }: Pick<World, 'database'>, query: RawBuilder<Row>): Promise<readonly Row[]> {
  await clockTick();
  return (await query.execute(database.kysely)).rows;
}

/** Runs statements in one transaction, as another program would. */
export async function together({ database }: World, statements: readonly RawBuilder<unknown>[]): Promise<void> {
  await clockTick();
  await database.kysely.transaction().execute(async (trx) => {
    for (const statement of statements) await statement.execute(trx);
  });
}

/** Takes in all that was held when the history was switched on. */
export async function takeInAll({ database }: Pick<World, 'database'>, limit = 100): Promise<void> {
  let position: HeldPosition | undefined;
  do position = await takeInHeld(database, position, limit);
  while (position !== undefined);
}

/** Switches the history on, and takes in all that is held. */
export async function switchOn(world: Pick<World, 'database'>): Promise<void> {
  await switchHistoryOn(world.database);
  await takeInAll(world);
}

/** Switches the history off, and closes all open records. */
export async function switchOff({ database }: World, limit = 100): Promise<void> {
  await switchHistoryOff(database);
  while (await closeRecords(database, limit));
}

/** A record, open or ended. Times are microseconds. */
export type HistoryRecord = {
  readonly id: string;
  readonly consumer: string;
  readonly name: string | null;
  readonly owner: string;
  readonly provider: string;
  readonly className: string;
  readonly amount: number;
  readonly began: number;
  /** Null for an open record. */
  readonly until: number | null;
  readonly ended: string | null;
};

const owner = sql`coalesce((select external_id from projects where id = project_id) || '/' || (select external_id from users where id = user_id)
  || '/' || coalesce((select name from consumer_types where id = consumer_type_id), ''), '')`;
const micros = (column: string) => sql`(extract(epoch from ${sql.ref(column)}) * 1000000)::float8`;

/** All records, by their beginnings, ends and classes. */
export const recordsOf = (world: World): Promise<readonly HistoryRecord[]> =>
  run(
    world,
    sql<HistoryRecord>`
    select id::text, consumer_id as consumer, name, ${owner} as owner, provider_uuid as provider, class_name as "className",
      amount::float8, ${micros('began_at')} as began, ${micros('ended_at')} as until, ended from usage_records
    union all
    select id::text, consumer_id, name, ${owner}, provider_uuid, class_name, amount::float8, ${micros('began_at')}, null, null
    from open_usage_records
    order by began, until, "className", provider`,
  );

/** What the clock of the database says, in microseconds. */
export async function clockOf(world: World): Promise<number> {
  const [row] = await run(
    world,
    sql<{ readonly now: number }>`select (extract(epoch from clock_timestamp()) * 1000000)::float8 as now`,
  );
  return row?.now ?? 0;
}

type Difference = { readonly what: string } & Readonly<Record<string, unknown>>;

/**
 * In one snapshot: compares the open records with the allocations, their owners with those of the consumers, and their names as well.
 *
 * @returns what differs
 */
export const differences = (world: Pick<World, 'database'>): Promise<readonly Difference[]> =>
  run(
    world,
    sql<Difference>`
    with both_sides as (
      select a.consumer_id, resource_provider_id, resource_class_id, c.project_id, c.user_id, c.consumer_type_id, used as held, null::bigint as amount
      from allocations a left join consumers c on c.uuid = a.consumer_id
      union all
      select consumer_id, resource_provider_id, resource_class_id, project_id, user_id, consumer_type_id, null, amount from open_usage_records
    ),
    compared as (
      select consumer_id, resource_provider_id, resource_class_id, project_id, user_id, consumer_type_id, sum(held) as held, sum(amount) as amount
      from both_sides group by 1, 2, 3, 4, 5, 6
    )
    select 'held' as what, to_jsonb(compared) as detail from compared
    where held is distinct from amount and (select until is null and (amount is not null or is_complete) from usage_history)
    union all
    select 'name', to_jsonb(o) from open_usage_records o left join consumers c on c.uuid = o.consumer_id
    left join consumer_names n on n.consumer_id = c.id where n.name is distinct from o.name and exists (select from usage_history where until is null)`,
  );

/** Checks that the open records are what is held, and that the records are in order. */
export async function checkHistory(world: World): Promise<void> {
  assert.deepEqual(await differences(world), []);
  const disorder = await run(
    world,
    sql`
    with each as (
      select consumer_id, provider_uuid, class_name, began_at, ended_at from usage_records
      union all
      select consumer_id, provider_uuid, class_name, began_at, 'infinity' from open_usage_records
    ),
    followed as (
      select *, lead(began_at) over (partition by consumer_id, provider_uuid, class_name order by began_at, ended_at) as next from each
    )
    select * from followed where began_at >= ended_at or next < ended_at`,
  );
  assert.deepEqual(disorder, [], 'records overlap, or end before they begin');
}

/** Amounts by provider and class. */
export type ClaimedAmounts = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Claims for a consumer, whatever its generation is. */
export async function claim(
  { send }: World,
  consumer: string,
  amounts: ClaimedAmounts,
  more: object = {},
): Promise<void> {
  await clockTick();
  const generation = at((await send('GET', `/allocations/${consumer}`)).json, 'consumer_generation') ?? null;
  accepted(
    await send('PUT', `/allocations/${consumer}`, { ...newClaim(amounts), consumer_generation: generation, ...more }),
  );
}

/** The records of a consumer as texts, such as `1 VCPU of 2 by p/u/INSTANCE: moved`, after a check of all. */
export async function recordLines(world: World, consumer: string): Promise<readonly string[]> {
  await checkHistory(world);
  const records = (await recordsOf(world)).filter((record) => record.consumer === consumer);
  return records.map(
    ({ provider, className, amount, owner, until, ended }) =>
      `${amount} ${className} of ${provider.at(-1)} by ${owner}: ${until === null ? 'open' : ended}`,
  );
}

/** Allocations of a consumer as another program inserts them, one by one. */
export const inserted = (consumer: string, amounts: ClaimedAmounts): readonly RawBuilder<unknown>[] =>
  Object.entries(amounts).flatMap(([provider, resources]) =>
    Object.entries(resources).map(
      ([name, used]) => sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
        select p.id, r.id, ${consumer}, ${used}::integer from resource_providers p, resource_classes r
        where p.uuid = ${provider} and r.name = ${name}`,
    ),
  );
