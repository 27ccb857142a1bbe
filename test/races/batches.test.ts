/** Claims that are written together: each is judged as if it were alone, and none waits for ever. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { sql } from 'kysely';
import { type Claim, ClaimRefused } from '../../src/claims/claim.ts';
import { type Claims, openClaims } from '../../src/claims/claims.ts';
import { type FleetKeeper, openFleet } from '../../src/fleet/keep/keeper.ts';
import { claimOn } from '../support/claims.ts';
import { until } from '../support/until.ts';
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

type Setup = TwoConnections & { readonly claims: Claims; readonly fleet: FleetKeeper };

const withClaims = (use: (setup: Setup) => Promise<void>): Promise<void> =>
  withTwoConnections(async (connections) => {
    const fleet = await openFleet(connections.database);
    const claims = openClaims(connections.database, fleet, { conflictRetryCount: 10 });
    await use({ ...connections, fleet, claims });
  });

/** The reason of a refusal. Undefined if the claim was written. */
async function outcomeOf(written: Promise<unknown>): Promise<string | undefined> {
  try {
    await written;
    return undefined;
  } catch (error) {
    if (error instanceof ClaimRefused) return error.reason;
    throw error;
  }
}

const usedOf = async ({ other }: Setup) =>
  Number(
    (await other.query('select coalesce(sum(used), 0) as used from allocations where resource_provider_id = 1')).rows[0]
      .used,
  );

test('together the claims take exactly the whole capacity', async () => {
  await withClaims(async (setup) => {
    const claims = Array.from({ length: 30 }, (_, i) => outcomeOf(setup.claims.write(claimOf(`c${i}`, 1, null))));
    const outcomes = await Promise.all(claims);
    assert.equal(outcomes.filter((outcome) => outcome === undefined).length, 10);
    assert.equal(outcomes.filter((outcome) => outcome === 'invalid inventory').length, 20);
    assert.equal(await usedOf(setup), 10);
  });
});

test('one of several claims for a new consumer succeeds, and the other claims are refused', async () => {
  await withClaims(async (setup) => {
    const claims = Array.from({ length: 10 }, () => outcomeOf(setup.claims.write(claimOf('c', 1, null))));
    const outcomes = await Promise.all(claims);
    assert.deepEqual(
      outcomes.filter((outcome) => outcome !== 'consumer generation'),
      [undefined],
    );
  });
});

test('a claim beside a reshape is judged by the current inventories', async () => {
  await withClaims(async (setup) => {
    for (let round = 0; round < 20; round++) {
      await sql`update resource_providers set generation = 5 where id = 1`.execute(setup.database.kysely);
      await sql`update inventories set total = 10, max_unit = 10`.execute(setup.database.kysely);
      await sql`delete from allocations`.execute(setup.database.kysely);
      await sql`delete from consumers`.execute(setup.database.kysely);
      await setup.fleet.fresh();
      // This claim is already being written, so all others wait for it and are written together.
      const first = setup.claims.write(claimOf('first', 1, null));
      const reshaped = outcomeOf(setup.claims.write(reshapeTo(3, 6)));
      const claims = ['a', 'b', 'c', 'd'].map((uuid) => outcomeOf(setup.claims.write(claimOf(uuid, 2, null))));
      await first;
      const outcomes = await Promise.all(claims);
      const total = (await reshaped) === undefined ? 3 : 10;
      const written = outcomes.filter((outcome) => outcome === undefined).length;
      assert.equal(await usedOf(setup), 1 + 2 * written);
      // A reshape does not check usage against the new capacity. But after it no claim can go beyond the capacity.
      if (total === 3) assert.equal(written, 1, 'there was room for one more claim after the reshape');
    }
  });
});

test('one of several reshapes with the same generation succeeds', async () => {
  await withClaims(async (setup) => {
    const first = setup.claims.write(claimOf('first', 1, null));
    const reshapes = [20, 30, 40].map((total) => outcomeOf(setup.claims.write(reshapeTo(total, 6))));
    await first;
    assert.deepEqual((await Promise.all(reshapes)).sort(), ['provider generation', 'provider generation', undefined]);
    const { rows } = await setup.other.query('select generation from resource_providers where id = 1');
    assert.deepEqual(rows, [{ generation: 8 }]);
  });
});

test('a claim that does not fit is refused soon, even if many other claims are written', async () => {
  await withClaims(async (setup) => {
    await sql`update inventories set total = 1000000, max_unit = 1000000`.execute(setup.database.kysely);
    await setup.fleet.fresh();
    // Other claims come at any moment, also between reading and judging of a batch.
    let begun = 0;
    let waiting = 0;
    let answered = false;
    const others: Promise<unknown>[] = [];
    const come = async () => {
      while (!answered && begun < 3000) {
        if (waiting < 12) {
          waiting += 1;
          const other = setup.claims.write(claimOf(`another ${begun++}`, 1, null));
          others.push(other.finally(() => (waiting -= 1)));
        }
        await setImmediate();
      }
    };
    const coming = come();
    await others[0];
    const before = begun;
    assert.equal(await outcomeOf(setup.claims.write(claimOf('big', 1_000_000, null))), 'invalid inventory');
    const meanwhile = begun - before;
    answered = true;
    await Promise.all([coming, ...others]);
    assert.ok(meanwhile < 100, `${meanwhile} claims came before it was refused`);
  });
});

test('a rewrite that fits at every moment is not refused because the consumer changes in between', async () => {
  await withTwoConnections(async ({ database, other }) => {
    const real = await openFleet(database);
    const rewrites = [6, 8, 10];
    const statements = { begun: 0, ended: 0 };
    const kysely = database.kysely.withPlugin({
      transformQuery: ({ node }) => {
        statements.begun += 1;
        return node;
      },
      transformResult: async ({ result }) => {
        statements.ended += 1;
        return result;
      },
    });
    await other.query(`insert into consumers (uuid, project_id, user_id, generation) values ('c', 1, 1, 1);
      insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (1, 0, 'c', 4)`);
    // Another process raises the allocations of the consumer, after the consumer was read and before the fleet is read.
    const fleet: FleetKeeper = {
      ...real,
      get known() {
        return real.known;
      },
      get snapshot() {
        return real.snapshot;
      },
      get ownWrites() {
        return real.ownWrites;
      },
      fresh: async () => {
        await until('the consumer was read', () => statements.ended === statements.begun);
        const more = rewrites.shift();
        if (more !== undefined) {
          await other.query(`begin; update resource_providers set generation = generation + 1 where id = 1;
            update consumers set generation = generation + 1 where uuid = 'c';
            update allocations set used = ${more} where consumer_id = 'c'; commit`);
        }
        return real.fresh();
      },
    };
    const claims = openClaims({ ...database, kysely }, fleet, { conflictRetryCount: 10 });
    // The guard on the generation fails, so the claim must refresh the fleet.
    await other.query('update resource_providers set generation = generation + 1 where id = 1');
    // The consumer has 4, 6, 8 or 10 of the 10 units and is the only one. 9 always fit instead.
    assert.equal(await outcomeOf(claims.write(claimOf('c', 9))), undefined);
    assert.deepEqual(rewrites, [], 'the race took place');
  });
});

test('a consumer with a new owner is written, and so are the claims of the same batch', async () => {
  await withClaims(async (setup) => {
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, (_, i) => {
        const claim = claimOf(`c${i}`, 1, null);
        const consumers = claim.consumers.map((each) => ({
          ...each,
          projectId: `project ${i % 3}`,
          userId: `user ${i % 2}`,
          consumerType: 'NEW_TYPE',
        }));
        return outcomeOf(setup.claims.write({ ...claim, consumers }));
      }),
    );
    assert.deepEqual(new Set(outcomes), new Set([undefined]));
    assert.equal(await usedOf(setup), 8);
  });
});

test('no claim is refused by outdated data', async () => {
  await withTwoConnections(async ({ database, other }) => {
    await other.query(`insert into consumers (uuid, project_id, user_id, generation) values ('full', 1, 1, 1);
      insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (1, 0, 'full', 10)`);
    const claims = openClaims(database, await openFleet(database), { conflictRetryCount: 10 });
    await other.query(`delete from allocations; delete from consumers`);
    assert.equal(await outcomeOf(claims.write(claimOf('c', 10, null))), undefined, 'room that another writer freed');

    const others = openClaims(database, await openFleet(database), { conflictRetryCount: 10 });
    await other.query(`insert into resource_providers (id, uuid, name, generation) values (9, 'rp9', 'rp9', 0);
      insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
        allocation_ratio) values (9, 0, 10, 0, 1, 10, 1, 1)`);
    assert.equal(await outcomeOf(others.write(claimOf('d', 10, null, 'rp9'))), undefined, 'a new provider');
  });
});

test('a class is claimed by its current name, not by its name when the fleet was read', async () => {
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
