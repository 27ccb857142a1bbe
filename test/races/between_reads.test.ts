/**
 * A claim is judged by two reads, first of its consumers and then of the fleet. Another writer may commit in between.
 * The amount that a consumer had must not be freed twice then.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { type Claim, ClaimRefused } from '../../src/claims/claim.ts';
import { openClaims } from '../../src/claims/claims.ts';
import { openDeletions } from '../../src/claims/deletions.ts';
import { type FleetKeeper, openFleet } from '../../src/fleet/keep/keeper.ts';
import { claimOn } from '../support/claims.ts';
import { withFreshDatabase } from '../support/engines.ts';

const consumer = '00000000-0000-4000-8000-00000000000c';
const neighbour = '00000000-0000-4000-8000-00000000000d';

const claimOf = (uuid: string, provider: string, used: number): Claim =>
  claimOn(provider, uuid, used, { consumerType: 'INSTANCE' });

/** Calls back with two hosts of 10 VCPU each. The consumer `neighbour` has 5 VCPU of the first one. */
async function withHosts(use: (database: Database, fleet: FleetKeeper) => Promise<void>): Promise<void> {
  await withFreshDatabase('embedded', async ({ settings }) => {
    const database = await openDatabase(settings);
    try {
      await sql`insert into resource_providers (id, uuid, name, generation, root_provider_id)
        values (1, 'p', 'p', 0, 1), (2, 'q', 'q', 0, 2)`.execute(database.kysely);
      await sql`insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit,
        step_size, allocation_ratio) values (1, 0, 10, 0, 1, 10, 1, 1), (2, 0, 10, 0, 1, 10, 1, 1)`.execute(
        database.kysely,
      );
      const fleet = await openFleet(database);
      await openClaims(database, fleet, { conflictRetryCount: 10 }).write(claimOf(neighbour, 'p', 5));
      await use(database, fleet);
    } finally {
      await database.close();
    }
  });
}

/**
 * The consumer claims 8 VCPU of the first host while another writer does something. @returns the usage of the host
 * afterwards
 */
async function askMeanwhile(database: Database, fleet: FleetKeeper, others: () => Promise<void>): Promise<unknown> {
  let refreshes = 0;
  const watched: FleetKeeper = {
    ...fleet,
    get known() {
      return fleet.known;
    },
    fresh: async () => {
      if (refreshes++ === 0) await others();
      return fleet.fresh();
    },
  };
  const asking = openClaims(database, watched, { conflictRetryCount: 10 }).write(claimOf(consumer, 'p', 8));
  await assert.rejects(asking, (error) => error instanceof ClaimRefused && error.reason === 'invalid inventory');
  const { rows } = await sql`select sum(used)::integer as used from allocations where resource_provider_id = 1`.execute(
    database.kysely,
  );
  return rows[0];
}

test('a consumer that is deleted and made again with the same generation is a different consumer', async () => {
  await withHosts(async (database, fleet) => {
    const others = openClaims(database, fleet, { conflictRetryCount: 10 });
    await others.write(claimOf(consumer, 'p', 5));
    const used = await askMeanwhile(database, fleet, async () => {
      await openDeletions(database).delete(consumer);
      await others.write(claimOf(consumer, 'q', 1));
    });
    assert.deepEqual(used, { used: 5 });
  });
});

test('old allocations that are deleted are not freed a second time', async () => {
  await withHosts(async (database, fleet) => {
    await sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
      values (1, 0, ${consumer}, 5)`.execute(database.kysely);
    await fleet.fresh();
    const used = await askMeanwhile(database, fleet, async () => {
      await openDeletions(database).delete(consumer);
    });
    assert.deepEqual(used, { used: 5 });
  });
});
