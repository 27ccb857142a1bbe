/** Gangs that are judged while the batch before them is being written. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { Database } from '../../db/engine/connect.ts';
import { ClaimRefused } from '../../src/claims/claim.ts';
import { type Claims, openClaims } from '../../src/claims/claims.ts';
import { type FleetKeeper, openFleet } from '../../src/fleet/keep/keeper.ts';
import { type TwoConnections, withTwoConnections } from '../races/two_connections.ts';
import { until } from '../support/until.ts';
import { byQuery } from './by_query.ts';

/** The database, whose transactions begin when the test lets them. */
function heldUp(database: Database) {
  let isHeld = false;
  const waiting: (() => void)[] = [];
  const transaction = async (...args: Parameters<Database['transaction']>) => {
    if (isHeld) await new Promise<void>((resolve) => waiting.push(resolve));
    return database.transaction(...args);
  };
  return {
    // The cast is right: it returns what `database.transaction` returns for the same statements.
    database: { ...database, transaction: transaction as Database['transaction'] },
    hold: () => {
      isHeld = true;
    },
    isWaiting: () => waiting.length > 0,
    letGo: () => {
      isHeld = false;
      for (const resolve of waiting.splice(0)) resolve();
    },
  };
}

type Setup = TwoConnections & {
  readonly claims: Claims;
  readonly fleet: FleetKeeper;
  /** How many claims lost a guard. */
  readonly retries: () => number;
  readonly letGo: () => void;
  /** A gang of 20, whose statement waits until `letGo`. */
  readonly first: readonly string[];
  readonly firstWritten: Promise<unknown>;
  /** A gang of 20 by an order of its own. Resolves when a place was looked for, while the first gang is not written. */
  readonly judgeSecond: () => Promise<{ readonly uuids: readonly string[]; readonly written: Promise<unknown> }>;
};

/** Calls back with two hosts of 10 VCPU, which have room for `room` consumers in all. */
async function whileFirstIsWritten(room: number, use: (setup: Setup) => Promise<void>): Promise<void> {
  await withTwoConnections(async ({ database, other }) => {
    await other.query(`update inventories set allocation_ratio = ${room / 20}`);
    const fleet = await openFleet(database);
    const held = heldUp(database);
    let retries = 0;
    const onRetry = () => {
      retries += 1;
    };
    const claims = openClaims(held.database, fleet, { conflictRetryCount: 1, onRetry });
    const first = gang();
    held.hold();
    const firstWritten = claims.write(byQuery(first, 'resources=VCPU:1'));
    firstWritten.catch(() => {});
    await until('the first gang is being written', held.isWaiting);
    const judgeSecond = async () => {
      const { made } = fleet.known.treeOrders;
      const uuids = gang();
      const written = claims.write(byQuery(uuids, 'resources=VCPU:1&order=free:VCPU'));
      written.catch(() => {});
      // The order of the trees is made when the place is looked for.
      await until('the second gang is judged', () => fleet.known.treeOrders.made > made);
      return { uuids, written };
    };
    const { letGo } = held;
    await use({ database, other, claims, fleet, retries: () => retries, letGo, first, firstWritten, judgeSecond });
  });
}

const gang = (): readonly string[] => Array.from({ length: 20 }, () => randomUUID());

const usedIn = ({ known }: FleetKeeper): readonly (number | undefined)[] =>
  [1, 2].map((id) => known.byId.get(id)?.inventories[0]?.used);

async function holdersOf({ other }: Pick<Setup, 'other'>): Promise<ReadonlySet<string>> {
  const { rows } = await other.query('select consumer_id from allocations where used = 1');
  return new Set(rows.map(({ consumer_id }) => consumer_id));
}

test('a gang is judged with the amounts of the previous batch as used, while that batch is being written', async () => {
  await whileFirstIsWritten(40, async (setup) => {
    const { uuids, written } = await setup.judgeSecond();
    assert.deepEqual(usedIn(setup.fleet), [0, 0]);
    setup.letGo();
    await Promise.all([setup.firstWritten, written]);
    // Judged on anything else, the second gang would have lost the guard of a generation.
    assert.equal(setup.retries(), 0);
    assert.deepEqual(usedIn(setup.fleet), [20, 20]);
    assert.deepEqual(await holdersOf(setup), new Set([...setup.first, ...uuids]));
  });
});

test('if the previous batch loses a guard, a gang is judged again, and has lost no race', async () => {
  await whileFirstIsWritten(40, async (setup) => {
    const { uuids, written } = await setup.judgeSecond();
    await setup.other.query('update resource_providers set generation = generation + 1');
    setup.letGo();
    await Promise.all([setup.firstWritten, written]);
    assert.equal(setup.retries(), 1);
    assert.deepEqual(usedIn(setup.fleet), [20, 20]);
    assert.deepEqual(await holdersOf(setup), new Set([...setup.first, ...uuids]));
  });
});

test('a gang is not refused because of claims of the previous batch that are not written', async () => {
  await whileFirstIsWritten(20, async (setup) => {
    const { uuids, written } = await setup.judgeSecond();
    // The first gang is refused, since one of its consumers exists.
    await setup.other.query(
      `insert into consumers (uuid, project_id, user_id, generation) values ('${setup.first[0]}', 1, 1, 1)`,
    );
    setup.letGo();
    await assert.rejects(setup.firstWritten, ClaimRefused);
    await written;
    assert.deepEqual(await holdersOf(setup), new Set(uuids));
  });
});

test('a gang for which the previous batch leaves no room is refused when that batch is written', async () => {
  await whileFirstIsWritten(20, async (setup) => {
    const { written } = await setup.judgeSecond();
    setup.letGo();
    await setup.firstWritten;
    await assert.rejects(written, ClaimRefused);
    assert.deepEqual(await holdersOf(setup), new Set(setup.first));
  });
});

test('after a refresh that shows claims of other processes a gang is judged again', async () => {
  await whileFirstIsWritten(100, async (setup) => {
    const { uuids, written } = await setup.judgeSecond();
    await setup.other.query(`insert into consumers (uuid, project_id, user_id, generation) values ('theirs', 1, 1, 1);
      insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (1, 0, 'theirs', 30);
      update resource_providers set generation = generation + 1 where id = 1`);
    await setup.fleet.fresh();
    setup.letGo();
    await Promise.all([setup.firstWritten, written]);
    // Only the first gang was under way meanwhile, and only where it took something of that host.
    assert.ok(setup.retries() <= 1);
    assert.deepEqual(await holdersOf(setup), new Set([...setup.first, ...uuids]));
  });
});

test('claims for a consumer that is being written are not judged ahead, but in their order', async () => {
  await whileFirstIsWritten(60, async (setup) => {
    const [consumer = ''] = setup.first;
    const later = setup.claims.write(byQuery([consumer, ...gang()], 'resources=VCPU:1&order=free:VCPU'));
    const other = await setup.judgeSecond();
    setup.letGo();
    await Promise.all([setup.firstWritten, other.written]);
    // The client took the consumer for a new one.
    await assert.rejects(later, ({ reason }: ClaimRefused) => reason === 'consumer generation');
    assert.deepEqual(await holdersOf(setup), new Set([...setup.first, ...other.uuids]));
  });
});
