/** Claims that are written together: each is judged as if it were alone, and none waits for ever. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { sql } from 'kysely';
import { type Claim, ClaimRefused } from '../../src/claims/claim.ts';
import { type Claims, openClaims } from '../../src/claims/claims.ts';
import { type FleetKeeper, openFleet } from '../../src/fleet/keeper.ts';
import { claimOn } from './claim_on.ts';
import { type TwoConnections, withTwoConnections } from './two_connections.ts';

const claimOf = (
  uuid: string,
  amount: number,
  generation: number | null | undefined = undefined,
  provider = 'rp1',
): Claim => claimOn(provider, uuid, amount, { knownGeneration: generation });

const reshapeTo = (total: number, knownGeneration: number): Claim => ({
  consumers: [],
  inventories: [
    {
      providerUuid: 'rp1',
      knownGeneration,
      inventories: new Map([
        ['VCPU', { total, reserved: 0, minUnit: 1, maxUnit: total, stepSize: 1, allocationRatio: 1 }],
      ]),
    },
  ],
});

type Place = TwoConnections & { readonly claims: Claims; readonly fleet: FleetKeeper };

const withClaims = (use: (place: Place) => Promise<void>): Promise<void> =>
  withTwoConnections(async (connections) => {
    const fleet = await openFleet(connections.database);
    const claims = openClaims(connections.database, fleet, { conflictRetryCount: 10 });
    await use({ ...connections, fleet, claims });
  });

/** Why it was refused; undefined where it was written. */
async function outcomeOf(written: Promise<void>): Promise<string | undefined> {
  try {
    await written;
    return undefined;
  } catch (error) {
    if (error instanceof ClaimRefused) return error.reason;
    throw error;
  }
}

const usedOf = async ({ other }: Place) =>
  Number(
    (await other.query('select coalesce(sum(used), 0) as used from allocations where resource_provider_id = 1')).rows[0]
      .used,
  );

test('together they take what there is, to the last unit, and no more', async () => {
  await withClaims(async (place) => {
    const claims = Array.from({ length: 30 }, (_, i) => outcomeOf(place.claims.write(claimOf(`c${i}`, 1, null))));
    const outcomes = await Promise.all(claims);
    assert.equal(outcomes.filter((outcome) => outcome === undefined).length, 10);
    assert.equal(outcomes.filter((outcome) => outcome === 'invalid inventory').length, 20);
    assert.equal(await usedOf(place), 10);
  });
});

test('of claims for one new consumer one wins, and the others are told of it', async () => {
  await withClaims(async (place) => {
    const claims = Array.from({ length: 10 }, () => outcomeOf(place.claims.write(claimOf('c', 1, null))));
    const outcomes = await Promise.all(claims);
    assert.deepEqual(
      outcomes.filter((outcome) => outcome !== 'consumer generation'),
      [undefined],
    );
  });
});

test('a claim beside a reshape is judged by the inventories that it finds', async () => {
  await withClaims(async (place) => {
    for (let round = 0; round < 20; round++) {
      await sql`update resource_providers set generation = 5 where id = 1`.execute(place.database.kysely);
      await sql`update inventories set total = 10, max_unit = 10`.execute(place.database.kysely);
      await sql`delete from allocations`.execute(place.database.kysely);
      await sql`delete from consumers`.execute(place.database.kysely);
      await place.fleet.fresh();
      // One that is under way, so that all others wait for it and go together.
      const first = place.claims.write(claimOf('first', 1, null));
      const reshaped = outcomeOf(place.claims.write(reshapeTo(3, 6)));
      const claims = ['a', 'b', 'c', 'd'].map((uuid) => outcomeOf(place.claims.write(claimOf(uuid, 2, null))));
      await first;
      const outcomes = await Promise.all(claims);
      const total = (await reshaped) === undefined ? 3 : 10;
      const written = outcomes.filter((outcome) => outcome === undefined).length;
      assert.equal(await usedOf(place), 1 + 2 * written);
      // A reshape does not hold usage against the new capacity, but nothing is added beyond it afterwards.
      if (total === 3) assert.equal(written, 1, 'what came after the reshape had room for one more');
    }
  });
});

test('of reshapes by one generation one wins', async () => {
  await withClaims(async (place) => {
    const first = place.claims.write(claimOf('first', 1, null));
    const reshapes = [20, 30, 40].map((total) => outcomeOf(place.claims.write(reshapeTo(total, 6))));
    await first;
    assert.deepEqual((await Promise.all(reshapes)).sort(), ['provider generation', 'provider generation', undefined]);
    const { rows } = await place.other.query('select generation from resource_providers where id = 1');
    assert.deepEqual(rows, [{ generation: 8 }]);
  });
});

test('a claim that cannot be met is refused soon, however many others go on', async () => {
  await withClaims(async (place) => {
    await sql`update inventories set total = 1000000, max_unit = 1000000`.execute(place.database.kysely);
    await place.fleet.fresh();
    // Others come at any moment, also between the reading and the judging of a batch.
    let begun = 0;
    let waiting = 0;
    let answered = false;
    const others: Promise<void>[] = [];
    const come = async () => {
      while (!answered && begun < 3000) {
        if (waiting < 12) {
          waiting += 1;
          const other = place.claims.write(claimOf(`another ${begun++}`, 1, null));
          others.push(other.finally(() => (waiting -= 1)));
        }
        await setImmediate();
      }
    };
    const coming = come();
    await others[0];
    const before = begun;
    assert.equal(await outcomeOf(place.claims.write(claimOf('big', 1_000_000, null))), 'invalid inventory');
    const meanwhile = begun - before;
    answered = true;
    await Promise.all([coming, ...others]);
    assert.ok(meanwhile < 100, `${meanwhile} claims came before it was refused`);
  });
});

test('a rewrite that fits at every moment is not refused because the consumer changes meanwhile', async () => {
  await withTwoConnections(async ({ database, other }) => {
    const real = await openFleet(database);
    const rewrites = [6, 8, 10];
    await other.query(`insert into consumers (uuid, project_id, user_id, generation) values ('c', 1, 1, 1);
      insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (1, 0, 'c', 4)`);
    // Another process gives the consumer more, just before the fleet is read and after the consumer was.
    const fleet: FleetKeeper = {
      ...real,
      get known() {
        return real.known;
      },
      get moment() {
        return real.moment;
      },
      get foreseen() {
        return real.foreseen;
      },
      fresh: async () => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        const more = rewrites.shift();
        if (more !== undefined) {
          await other.query(`begin; update resource_providers set generation = generation + 1 where id = 1;
            update consumers set generation = generation + 1 where uuid = 'c';
            update allocations set used = ${more} where consumer_id = 'c'; commit`);
        }
        return real.fresh();
      },
    };
    const claims = openClaims(database, fleet, { conflictRetryCount: 10 });
    // A lost guard, so that the claim needs the fleet refreshed.
    await other.query('update resource_providers set generation = generation + 1 where id = 1');
    // The consumer has 4, 6, 8 or 10 of the 10 units, nobody else has any, and 9 always fit instead.
    assert.equal(await outcomeOf(claims.write(claimOf('c', 9))), undefined);
    assert.deepEqual(rewrites, [], 'the race took place');
  });
});

test('a consumer whose owner is new is written, and so are those beside it', async () => {
  await withClaims(async (place) => {
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, (_, i) => {
        const claim = claimOf(`c${i}`, 1, null);
        const consumers = claim.consumers.map((each) => ({
          ...each,
          projectId: `project ${i % 3}`,
          userId: `user ${i % 2}`,
          consumerType: 'NEW_TYPE',
        }));
        return outcomeOf(place.claims.write({ ...claim, consumers }));
      }),
    );
    assert.deepEqual(new Set(outcomes), new Set([undefined]));
    assert.equal(await usedOf(place), 8);
  });
});

test('nothing is refused by an old picture', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query(`insert into consumers (uuid, project_id, user_id, generation) values ('full', 1, 1, 1);
      insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (1, 0, 'full', 10)`);
    const claims = openClaims(database, await openFleet(database), { conflictRetryCount: 10 });
    await other.query(`delete from allocations; delete from consumers`);
    assert.equal(await outcomeOf(claims.write(claimOf('c', 10, null))), undefined, 'room that somebody made');

    const others = openClaims(database, await openFleet(database), { conflictRetryCount: 10 });
    await other.query(`insert into resource_providers (id, uuid, name, generation) values (9, 'rp9', 'rp9', 0);
      insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
        allocation_ratio) values (9, 0, 10, 0, 1, 10, 1, 1)`);
    assert.equal(await outcomeOf(others.write(claimOf('d', 10, null, 'rp9'))), undefined, 'a provider that is new');
  });
});

test('a class is claimed by the name that it has, not by the one that it had when the fleet was read', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query(`insert into resource_classes (id, name) values (10000, 'CUSTOM_OLD');
      insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
        allocation_ratio) values (1, 10000, 10, 0, 1, 10, 1, 1)`);
    const claims = openClaims(database, await openFleet(database), { conflictRetryCount: 10 });
    const claim = (uuid: string, resourceClass: string): Promise<string | undefined> => {
      const allocations = new Map([['rp1', new Map([[resourceClass, 1]])]]);
      return outcomeOf(claims.write(claimOn('rp1', uuid, 1, { knownGeneration: null, allocations })));
    };
    assert.equal(await claim('before', 'CUSTOM_OLD'), undefined);
    await other.query(`update resource_classes set name = 'CUSTOM_NEW' where id = 10000`);
    assert.equal(await claim('by its old name', 'CUSTOM_OLD'), 'unknown class');
    assert.equal(await claim('by its new name', 'CUSTOM_NEW'), undefined);
  });
});
