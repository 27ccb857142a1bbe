/**
 * Clients that follow from a position whose later changes are no longer in memory: they are read from the log. And the refreshes for
 * clients.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { type ChangedParts, consumersBit } from '../../db/fleet/changed_parts.ts';
import { interestOf, type Part } from '../../src/fleet/follow/change_set.ts';
import {
  type Follower,
  type Followers,
  mostEntries,
  openFollowers,
  pauseMs,
} from '../../src/fleet/follow/followers.ts';
import { type FleetKeeper, openFleet } from '../../src/fleet/keep/keeper.ts';
import { anyEngine, type Engine, withFreshDatabase } from '../support/engines.ts';
import { until } from '../support/until.ts';

/** What the followers see instead of the fleet and the database. */
type Seen = {
  fresh: FleetKeeper['fresh'];
  ageSeconds: number;
  snapshot: FleetKeeper['snapshot'] | undefined;
  /** Called when they ask the database. */
  asked: () => void;
  position: FleetKeeper['recent']['position'] | undefined;
  /** The changes in memory since any position. */
  rows: readonly ChangedParts[] | undefined;
};

type Scene = {
  readonly database: Database;
  readonly fleet: FleetKeeper;
  readonly followers: Followers;
  readonly seen: Seen;
};

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
      const seen: Seen = {
        fresh: fleet.fresh,
        ageSeconds: 0, // only the test refreshes the fleet
        snapshot: undefined,
        asked: () => {},
        position: undefined,
        rows: undefined,
      };
      const forgetful = {
        fresh: () => seen.fresh(),
        get known() {
          return fleet.known;
        },
        get snapshot() {
          return seen.snapshot ?? fleet.snapshot;
        },
        ageSeconds: () => seen.ageSeconds,
        recent: {
          ...recent,
          get position() {
            return seen.position ?? recent.position;
          },
          since: () => seen.rows,
        },
      };
      const asked = {
        get kysely() {
          seen.asked();
          return database.kysely;
        },
      };
      const followers = openFollowers(asked, forgetful, { lookEveryMs: 1, maxFollowers: 9 });
      try {
        await use({ database, fleet, followers, seen });
      } finally {
        followers.end();
      }
    } finally {
      await database.close();
    }
  });
}

/** A client, and the texts of what it has got. */
function clientOf(
  parts: Parameters<typeof interestOf>[0],
  className?: string,
): { readonly follower: Follower; readonly got: string[] } {
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
    for (let seat = 1; seat < 9; seat += 1) followers.takeSeat('client');
    followers.takeSeat('client')?.follow(follower, fleet.recent.position);
    const { pgSnapshot, lastXid } = fleet.snapshot;
    fleet.recent.restart({ pgSnapshot, log: { identity: 'of the standby', lastXid } });
    await until('it is told', () => got.length > 0);
    assert.ok(followers.takeSeat('other'), 'it gets the seat');
    assert.deepEqual(got, ['expired']);
  }));

test('what is read from the log is sent with the position of the fleet before, and a later change with the next one', () =>
  withoutMemory(anyEngine, async ({ database, fleet, followers, seen }) => {
    const from = fleet.recent.position;
    await giveTrait(database);
    await fleet.fresh();
    const before = fleet.recent.position;
    seen.asked = () => {
      seen.position = { ...before, next: before.next + 9 };
    };
    const delivery = await followers.since(from, interestOf(['traits']));
    assert.ok(delivery !== 'expired');
    assert.ok(fleet.recent.isRecording(), 'the next changes are kept in memory');
    assert.deepEqual([delivery.changes.text(interestOf(['traits'])), delivery.position], [partsOf('traits'), before]);
  }));

test('where the log of another run of the server is found, the fleet is refreshed before the log is read again', () =>
  withoutMemory(anyEngine, async ({ database, fleet, followers, seen }) => {
    const from = fleet.recent.position;
    await giveTrait(database);
    await fleet.fresh();
    const restarted = (onRefresh: () => void): void => {
      seen.snapshot = { ...fleet.snapshot, serverRun: 'the run before' };
      seen.fresh = async () => {
        seen.snapshot = undefined;
        onRefresh();
        return fleet.known;
      };
    };
    restarted(() => {});
    const delivery = await followers.since(from, interestOf(['traits']));
    assert.equal(delivery === 'expired' ? delivery : delivery.changes.text(interestOf(['traits'])), partsOf('traits'));
    restarted(() => {
      const { pgSnapshot, lastXid } = fleet.snapshot;
      fleet.recent.restart({ pgSnapshot, log: { identity: 'of the standby', lastXid } });
    });
    assert.equal(await followers.since(from, interestOf(['traits'])), 'expired');
  }));

test('a client follows on where the log could not be read', () =>
  withoutMemory(anyEngine, async ({ database, fleet, followers, seen }) => {
    const from = fleet.recent.position;
    await giveTrait(database);
    await fleet.fresh();
    let failures = 0;
    seen.asked = () => {
      if (failures === 3) return;
      failures += 1;
      throw new Error('the database is unavailable');
    };
    const { follower, got } = clientOf(['traits']);
    followers.takeSeat('client')?.follow(follower, from);
    await until('it has got the change', () => got.length > 0);
    assert.deepEqual([failures, got], [3, [partsOf('traits')]]);
  }));

test('a client that wants more changes than one delivery has is told to read everything anew, and others go on', () =>
  withoutMemory(anyEngine, async ({ fleet, followers, seen }) => {
    const from = { ...fleet.recent.position };
    const consumers = interestOf(['consumers']);
    const rows = Array.from(
      { length: mostEntries },
      (_, each): ChangedParts => ['7', null, `${each}`, consumersBit, null],
    );
    seen.rows = rows;
    assert.notEqual(await followers.since(from, consumers), 'expired');
    seen.rows = [...rows, ['7', null, 'one more', consumersBit, null]];
    assert.equal(await followers.since(from, consumers), 'expired');
    const clients = [clientOf(['consumers']), clientOf(['traits'])];
    for (const { follower } of clients) followers.takeSeat('client')?.follow(follower, from);
    await until('both have got something', () => clients.every(({ got }) => got.length > 0));
    assert.deepEqual(
      clients.map(({ got }) => got),
      [['expired'], ['[]']],
    );
  }));

test('the log has as many changes as one delivery has, also if it has two rows for each', () =>
  withoutMemory('postgresql', async ({ database, fleet, followers }) => {
    const from = fleet.recent.position;
    // As if so many providers had been made and deleted.
    await sql`insert into provider_changes (provider_id, uuid, whole, parts)
      select n + 1, uuid, true, case when uuid is null then 4 else 1 end
      from generate_series(1, ${mostEntries}::integer) as n cross join lateral (values (n::text), (null)) as rows (uuid)`.execute(
      database.kysely,
    );
    await fleet.fresh();
    const delivery = await followers.since(from, interestOf(['provider', 'traits']));
    assert.equal(delivery === 'expired' ? delivery : delivery.changes.size(interestOf(['traits'])), mostEntries);
  }));

test('while clients follow there is one refresh at a time, also if the last one is old by a part of a second only', () =>
  withoutMemory(anyEngine, async ({ fleet, followers, seen }) => {
    let [refreshes, underWay] = [0, 0];
    let mayEnd = Promise.withResolvers<void>();
    seen.ageSeconds = 0.1;
    seen.fresh = async () => {
      refreshes += 1;
      underWay += 1;
      await mayEnd.promise;
      underWay -= 1;
      return fleet.known;
    };
    const follow = () => followers.takeSeat('client')?.follow(clientOf([]).follower, fleet.recent.position);
    assert.equal(fleet.recent.isRecording(), false);
    const first = follow();
    await until('the fleet is refreshed', () => refreshes === 1);
    assert.equal(fleet.recent.isRecording(), true);
    const second = follow();
    await sleep(20); // the followers look every millisecond
    assert.deepEqual([refreshes, underWay], [1, 1]);
    mayEnd.resolve();
    await until('it is refreshed again', () => refreshes > 2);
    mayEnd = Promise.withResolvers();
    await until('another refresh is under way', () => underWay === 1);
    first?.();
    second?.();
    const atEnd = refreshes;
    mayEnd.resolve();
    await sleep(20);
    assert.equal(refreshes, atEnd, 'without clients there is none');
  }));

test('after a refresh that failed there is a pause', () =>
  withoutMemory(anyEngine, async ({ fleet, followers, seen }) => {
    const refreshes: number[] = [];
    seen.ageSeconds = 0.1;
    seen.fresh = () => {
      refreshes.push(performance.now());
      return Promise.reject(new Error('the database is unavailable'));
    };
    followers.takeSeat('client')?.follow(clientOf([]).follower, fleet.recent.position);
    await until('the fleet is refreshed again', () => refreshes.length > 1);
    const [first = 0, second = 0] = refreshes;
    assert.ok(second - first >= pauseMs - 5, `${second - first} ms`); // timers count whole milliseconds
  }));

test('a client gets nothing after the end, and what is asked for after it ends at once', () =>
  withoutMemory(anyEngine, async ({ database, fleet, followers }) => {
    const { follower, got } = clientOf(['traits']);
    const from = fleet.recent.position;
    followers.takeSeat('client')?.follow(follower, from);
    followers.end();
    assert.deepEqual([got, followers.size], [['ended'], 0]);
    await giveTrait(database);
    await fleet.fresh();
    const late = clientOf(['traits']);
    followers.takeSeat('client')?.follow(late.follower, from);
    assert.deepEqual([late.got, followers.size, followers.seatsOf('client')], [['ended'], 0, 1]);
  }));
