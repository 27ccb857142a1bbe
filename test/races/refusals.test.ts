/** By what a claim is refused: consumers that were read before the fleet, and that have the same after it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { ClaimRefused } from '../../src/claims/claim.ts';
import { openClaims } from '../../src/claims/claims.ts';
import { type FleetKeeper, openFleet } from '../../src/fleet/keep/keeper.ts';
import { claimOn } from '../support/claims.ts';
import { type TwoConnections, untilWaiting, withTwoConnections } from './two_connections.ts';

/** Of 10 VCPU of provider 1 the neighbour has 5. The consumer has 5 of provider 2. */
const held = `
  insert into consumers (uuid, project_id, user_id, generation) values ('c', 1, 1, 1), ('neighbour', 1, 1, 1);
  insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
    values (2, 0, 'c', 5), (1, 0, 'neighbour', 5)`;
const neighbourGoes = `delete from allocations where consumer_id = 'neighbour'; delete from consumers where uuid = 'neighbour'`;

const contentOf = async ({ other }: TwoConnections) =>
  (await other.query('select resource_provider_id as provider, consumer_id as consumer, used from allocations')).rows;

/** A fleet that does not change; a refresh calls a function. */
const onFresh = (fleet: FleetKeeper, happens: () => Promise<unknown>): FleetKeeper => ({
  ...fleet,
  get known() {
    return fleet.known;
  },
  get snapshot() {
    return fleet.snapshot;
  },
  fresh: async () => {
    await happens();
    return fleet.fresh();
  },
});

test('a claim is judged again where its consumer has something else at the same generation', async () => {
  await withTwoConnections(async (connections) => {
    const { database, other } = connections;
    await other.query(held);
    let looks = 0;
    const fleet = onFresh(await openFleet(database), async () => {
      // After the consumer was read and before the fleet is.
      if (looks++ === 0) {
        await other.query(`${neighbourGoes}; update allocations set resource_provider_id = 1 where consumer_id = 'c'`);
      }
    });
    await openClaims(database, fleet, { conflictRetryCount: 1 }).write(claimOn('rp1', 'c', 6));
    assert.ok(looks > 1, 'it was judged once more');
    assert.deepEqual(await contentOf(connections), [{ provider: 1, consumer: 'c', used: 6 }]);
  });
});

test('a claim is refused by a fleet that was read after its consumers', async () => {
  await withTwoConnections(async (connections) => {
    const { database, other } = connections;
    await other.query(held);
    let looks = 0;
    const fleet = onFresh(await openFleet(database), async () => {
      looks += 1;
    });
    const { rows } = await other.query('select current_database() as database');
    const third = new pg.Client({
      host: other.host,
      port: other.port,
      user: other.user ?? '',
      database: rows[0].database,
    });
    await third.connect();
    try {
      // The first reading of the consumer, for the known fleet, waits for the first lock, and the second one for the second.
      const lock = 'begin; lock table consumers in access exclusive mode';
      await other.query(lock);
      const written = openClaims(database, fleet, { conflictRetryCount: 1 }).write(claimOn('rp1', 'c', 6));
      await untilWaiting(other);
      const locked = third.query(lock);
      await untilWaiting(other, 2);
      await other.query('commit');
      await locked;
      await untilWaiting(other);
      assert.equal(looks, 0, 'the consumer is read first');
      await third.query(neighbourGoes);
      await third.query('commit');
      await written;
      assert.equal(looks, 1);
    } finally {
      await third.end();
    }
  });
});

test('a claim of a new consumer that another process has made meanwhile is refused by its generation, at the first repetition', () =>
  withTwoConnections(async ({ database, other }) => {
    const fleet = await openFleet(database);
    let retries = 0;
    const onRetry = () => {
      retries += 1;
    };
    const claims = openClaims(database, fleet, { conflictRetryCount: 5, onRetry });
    // So that the statement looks for a record of the consumer.
    for (const uuid of ['known', 'new']) {
      await other.query(`insert into consumers (uuid, project_id, user_id, generation) values ('${uuid}', 1, 1, 4)`);
      await other.query(`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
        values (2, 0, '${uuid}', 1)`);
      retries = 0;
      await assert.rejects(
        claims.write(claimOn('rp1', uuid, 1, { knownGeneration: null })),
        (error) => error instanceof ClaimRefused && error.reason === 'consumer generation',
      );
      assert.equal(retries, 1, uuid);
    }
  }));
