/** Clients that follow from a position whose later changes are no longer in memory: they are read from the log. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { interestOf, type Part } from '../../src/fleet/follow/change_set.ts';
import { type Follower, type Followers, openFollowers } from '../../src/fleet/follow/followers.ts';
import { type FleetKeeper, openFleet } from '../../src/fleet/keep/keeper.ts';
import { anyEngine, type Engine, withFreshDatabase } from '../support/engines.ts';
import { until } from '../support/until.ts';

type Scene = { readonly database: Database; readonly fleet: FleetKeeper; readonly followers: Followers };

/** Calls back with a provider, and followers of a fleet that keeps no changes in memory. */
async function withoutMemory(engine: Engine, use: (scene: Scene) => Promise<void>): Promise<void> {
  await withFreshDatabase(engine, async ({ settings }) => {
    const database = await openDatabase(settings);
    try {
      await sql`insert into resource_providers (id, uuid, name, generation) values (1, 'p', 'p', 0)`.execute(
        database.kysely,
      );
      const fleet = await openFleet(database);
      const { recent } = fleet;
      const forgetful = {
        fresh: fleet.fresh,
        get known() {
          return fleet.known;
        },
        get snapshot() {
          return fleet.snapshot;
        },
        // Only the test refreshes the fleet.
        ageSeconds: () => 0,
        recent: {
          ...recent,
          get position() {
            return recent.position;
          },
          since: () => undefined,
        },
      };
      const followers = openFollowers(database, forgetful, { lookEveryMs: 1, maxFollowers: 9 });
      try {
        await use({ database, fleet, followers });
      } finally {
        followers.end();
      }
    } finally {
      await database.close();
    }
  });
}

/** A client, and the texts of what it has got. */
function clientOf(parts: readonly Part[], className?: string): { readonly follower: Follower; readonly got: string[] } {
  const interest = interestOf(parts, { className, inTree: undefined });
  const got: string[] = [];
  const send: Follower['send'] = (delivery) => {
    got.push(typeof delivery === 'string' ? delivery : delivery.changes.text(interest));
  };
  return { follower: { interest, send }, got };
}

const giveTrait = ({ kysely }: Pick<Database, 'kysely'>) =>
  sql`insert into resource_provider_traits (resource_provider_id, trait_id) select 1, min(id) from traits`.execute(
    kysely,
  );

const partsOf = (part: Part): string => JSON.stringify([{ resource_provider: 'p', parts: [part] }]);

test('one read of the log has what any of the clients at the position wants', () =>
  withoutMemory(anyEngine, async ({ database, fleet, followers }) => {
    const from = fleet.recent.position;
    await giveTrait(database);
    await sql`insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
      allocation_ratio) values (1, 0, 10, 0, 1, 10, 1, 1)`.execute(database.kysely);
    await fleet.fresh();
    // The inventory makes the provider one of the class.
    const clients = [clientOf(['aggregates']), clientOf(['traits']), clientOf(['aggregates'], 'VCPU')];
    for (const { follower } of clients) followers.takeSeat('client')?.follow(follower, from);
    await until('all have got something', () => clients.every(({ got }) => got.length > 0));
    assert.deepEqual(
      clients.map(({ got }) => got),
      [['[]'], [partsOf('traits')], [partsOf('aggregates')]],
    );
  }));

test('the log has what a transaction wrote that was under way at the position', () =>
  withoutMemory('postgresql', async ({ database, fleet, followers }) => {
    const from = await database.kysely.transaction().execute(async (kysely) => {
      await giveTrait({ kysely });
      await sql`insert into resource_providers (id, uuid, name, generation) values (2, 'q', 'q', 0)`.execute(
        database.kysely,
      );
      await fleet.fresh();
      return fleet.recent.position;
    });
    await fleet.fresh();
    const { follower, got } = clientOf(['provider', 'traits']);
    followers.takeSeat('client')?.follow(follower, from);
    await until('it has got the change', () => got.length > 0);
    assert.deepEqual(got, [partsOf('traits')]);
  }));

test('while the log is read for a position it is not read again, and each client gets the changes once', () =>
  withoutMemory('postgresql', async ({ database, fleet, followers }) => {
    const from = fleet.recent.position;
    await giveTrait(database);
    await fleet.fresh();
    const { follower, got } = clientOf(['traits']);
    const reads = async (): Promise<number> => {
      const { rows } = await sql`select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`.execute(database.kysely);
      return rows.length;
    };
    await database.kysely.transaction().execute(async (other) => {
      await sql`lock table provider_changes in access exclusive mode`.execute(other);
      followers.takeSeat('client')?.follow(follower, from);
      await until('the log is read', async () => (await reads()) > 0);
      await sleep(50); // the followers look every millisecond
      assert.equal(await reads(), 1);
    });
    await until('it has got the change', () => got.length > 0);
    await until('nothing is read any more', () => {
      const { open, idle } = database.connections();
      return idle === open;
    });
    assert.deepEqual(got, [partsOf('traits')]);
  }));

test('a client that follows while the server fails over is told to read everything anew', () =>
  withoutMemory(anyEngine, async ({ fleet, followers }) => {
    const { follower, got } = clientOf(['traits']);
    followers.takeSeat('client')?.follow(follower, fleet.recent.position);
    const { pgSnapshot, lastXid } = fleet.snapshot;
    fleet.recent.restart({ pgSnapshot, log: { identity: 'of the standby', lastXid } });
    await until('it is told', () => got.length > 0);
    assert.deepEqual(got, ['expired']);
  }));
