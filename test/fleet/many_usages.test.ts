/** Thousands of changed usages, as of claims and of terms that end, are read by one statement. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { readFleetSnapshot } from '../../db/fleet/change_log.ts';
import { readChanges } from '../../db/fleet/read_changes.ts';
import { openFleet } from '../../src/fleet/keep/keeper.ts';
import { loadFleet } from '../../src/fleet/keep/load.ts';
import { formOf } from '../races/fleet_form.ts';
import { anyEngine, withFreshDatabase } from '../support/engines.ts';

const providers = 4000;

async function withProviders(use: (database: Database) => Promise<void>): Promise<void> {
  await withFreshDatabase(anyEngine, async ({ settings }) => {
    const database = await openDatabase(settings);
    try {
      await sql`insert into resource_providers (id, uuid, name, generation)
        select n, 'u' || n, 'p' || n, 0 from generate_series(1, ${providers}::integer) as n`.execute(database.kysely);
      await sql`insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
          allocation_ratio)
        select id, 0, 10, 0, 1, 10, 1, 1 from resource_providers`.execute(database.kysely);
      await use(database);
    } finally {
      await database.close();
    }
  });
}

/** Makes a usage of three consumers on each provider. */
const makeUsages = ({ kysely }: Database) =>
  sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
    select id, 0, c, 1 from resource_providers cross join unnest(array['c1', 'c2', 'c3']) as c`.execute(kysely);

/** Ends the usage of a consumer on each provider, each in its own row of the log. */
const endUsages = ({ kysely }: Database, consumer: string) =>
  sql`delete from allocations where consumer_id = ${consumer}`.execute(kysely);

const logWhole = ({ kysely }: Database, count: number) =>
  sql`insert into provider_changes (provider_id, whole) select n, true from generate_series(1, ${count}::integer) as n`.execute(
    kysely,
  );

test('a refresh after thousands of releases reads usages only, and no provider rows', async () => {
  await withProviders(async (database) => {
    await makeUsages(database);
    const fleet = await openFleet(database);
    const snapshot = await readFleetSnapshot(database.kysely);
    await endUsages(database, 'c1');
    await endUsages(database, 'c2');
    const { isMuch, moved, touched } = await readChanges(database, snapshot);
    assert.deepEqual([isMuch, moved?.length, touched], [false, 2 * providers, null]);
    assert.equal((await fleet.fresh()).byId.get(providers)?.inventories[0]?.used, 1);
    await sql`update resource_providers set generation = generation + 1 where id <= 1000`.execute(database.kysely);
    assert.equal((await readChanges(database, snapshot)).touched?.length, 1000);
    assert.deepEqual(formOf(await fleet.fresh()), formOf((await loadFleet(database)).living.fleet));
    await endUsages(database, 'c3');
    assert.equal((await readChanges(database, snapshot)).isMuch, true, 'these are more rows than one statement reads');
  });
});

test('one statement reads 3,000 providers as a whole, however many rows each has in the log', async () => {
  await withProviders(async (database) => {
    const snapshot = await readFleetSnapshot(database.kysely);
    for (let time = 0; time < 2; time += 1) await logWhole(database, 3000);
    const { isMuch, whole } = await readChanges(database, snapshot);
    assert.deepEqual([isMuch, whole?.length], [false, 3000]);
    await logWhole(database, 3001);
    assert.equal((await readChanges(database, snapshot)).isMuch, true);
  });
});
