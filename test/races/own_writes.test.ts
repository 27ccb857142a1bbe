/**
 * Writes that the fleet shows before it has read them: they count once in any order of events, and the data that is
 * read replaces them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextIteration, setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { type RawBuilder, sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { onlyRow } from '../../db/engine/only_row.ts';
import { isRead } from '../../db/fleet/change_log.ts';
import { openClaims } from '../../src/claims/claims.ts';
import { type FleetKeeper, openFleet } from '../../src/fleet/keep/keeper.ts';
import { loadFleet } from '../../src/fleet/keep/load.ts';
import type { Fleet } from '../../src/fleet/model/fleet.ts';
import type { OwnWrite } from '../../src/fleet/model/own_writes.ts';
import { claimOn } from '../support/claims.ts';
import { type Engine, engines, runsOn, withFreshDatabase } from '../support/engines.ts';
import { formOf } from './fleet_form.ts';
import { openGate } from './held_results.ts';

const insertHost = sql`with host as (
    insert into resource_providers (id, uuid, name, generation) values (1, 'p', 'p', 0)
  )
  insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
    allocation_ratio) values (1, 0, 1000, 0, 1, 1000, 1, 1)`;
/** The statement of a claim: an allocation, and the next generation of the provider. */
const claim = sql<{ readonly xid: string }>`with allocation as (
    insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (1, 0, 'c', 1)
  ), provider as (
    update resource_providers set generation = generation + 1 where id = 1
  )
  select pg_current_xact_id()::text as xid`;
const retotal = sql`update inventories set total = total + 1 where resource_provider_id = 1`;
/** So many rows that one statement does not read all of them. */
const much = sql`insert into provider_changes (provider_id, whole) select 1, true from generate_series(1, 3001)`;
const effects: OwnWrite['effects'] = [{ providerId: 1, bump: 1, used: [{ classId: 0, delta: 1 }] }];

/** Writes a claim. @returns its transaction */
const claimed = async ({ kysely }: Database): Promise<string> => (await onlyRow(kysely, claim)).xid;

/** What a test is about. The gate holds back what the fleet reads, and nothing else. */
type Opened = { readonly database: Database; readonly fleet: FleetKeeper; readonly gate: ReturnType<typeof openGate> };

/** Calls back with a fleet that has one host. */
async function withHost(use: (opened: Opened) => Promise<void>, engine: Engine = 'embedded'): Promise<void> {
  await withFreshDatabase(engine, async ({ settings }) => {
    const database = await openDatabase(settings);
    const gate = openGate();
    try {
      await insertHost.execute(database.kysely);
      await use({
        database,
        gate,
        fleet: await openFleet({ ...database, kysely: database.kysely.withPlugin(gate.plugin) }),
      });
    } finally {
      gate.open();
      await database.close();
    }
  });
}

const steps = ['own', 'own, shown later', 'foreign', 'whole', 'much', 'show', 'refresh', 'refresh in between'] as const;

for (const engine of engines) {
  test(`own writes are shown at once and counted once, among writes of other clients, on ${engine}`, async () => {
    await withFreshDatabase(engine, async ({ settings }) => {
      const database = await openDatabase(settings);
      const run = (statement: RawBuilder<unknown>) => statement.execute(database.kysely);
      const runs = runsOn(engine, 60);
      try {
        await insertHost.execute(database.kysely);
        let shown = 0;
        await fc.assert(
          fc.asyncProperty(fc.array(fc.constantFrom(...steps), { minLength: 1, maxLength: 12 }), async (list) => {
            const fleet = await openFleet(database);
            const later: OwnWrite[] = [];
            const own = async (): Promise<OwnWrite> => ({ xid: await claimed(database), effects });
            const usage = () => fleet.known.byId.get(1)?.inventories[0]?.used ?? Number.NaN;
            for (const step of list) {
              if (step === 'own') {
                const before = usage();
                const write = await own();
                if (!isRead(fleet.snapshot, write.xid)) shown += 1;
                fleet.applyOwnWrite(write);
                assert.equal(usage(), before + 1);
              } else if (step === 'own, shown later') later.push(await own());
              else if (step === 'show') for (const write of later.splice(0)) fleet.applyOwnWrite(write);
              else if (step === 'foreign') await run(claim);
              else if (step === 'whole') await run(retotal);
              else if (step === 'much') await run(much);
              else if (step === 'refresh') await fleet.fresh();
              else {
                const refreshed = fleet.fresh();
                fleet.applyOwnWrite(await own());
                await refreshed;
                await nextIteration(); // then own writes that the refresh lacks are shown again
              }
            }
            for (const write of later) fleet.applyOwnWrite(write);
            const { fleet: loaded } = (await loadFleet(database)).living;
            assert.deepEqual(formOf(await fleet.fresh()), formOf(loaded));
          }),
          { numRuns: runs },
        );
        // Where the machine is busy, the refresh that comes half a second after the last one reads some of them first.
        assert.ok(shown > runs / 12, `only ${shown} writes were shown before they were read`);
      } finally {
        await database.close();
      }
    });
  });
}

test('a read that waited for a refresh shows no own write after a write of another process that the refresh lacks', async () => {
  await withHost(async ({ database, fleet, gate }) => {
    const usageIn = ({ byId }: Fleet) => byId.get(1)?.inventories[0]?.used;
    const read = async () => {
      const current = await fleet.fresh();
      return { usage: usageIn(current), ownWrites: fleet.ownWrites };
    };
    const reads = await gate.whileClosed(() => read());
    await claim.execute(database.kysely); // of another process
    const xid = await claimed(database);
    assert.ok(fleet.applyOwnWrite({ xid, effects }));
    assert.equal(usageIn(fleet.known), 1, 'a claim is judged by all own writes');
    gate.open();
    assert.deepEqual(await Promise.all(reads), [{ usage: 0, ownWrites: [] }]);
    await nextIteration();
    assert.deepEqual([usageIn(fleet.known), fleet.ownWrites], [1, [xid]]);
    assert.deepEqual(await read(), { usage: 2, ownWrites: [] });
  }, 'postgresql');
});

test('what own writes freed is told, also where the next own write shows them again', async () => {
  await withHost(async ({ database, fleet, gate }) => {
    const told: unknown[] = [];
    fleet.watchRoom((freed) => told.push(freed));
    // Any transaction will do: its effect need not be true.
    const freeing = async (providerId: number): Promise<OwnWrite> => {
      const xid = await claimed(database);
      return { xid, effects: [{ providerId, bump: 0, used: [{ classId: 0, delta: -1 }] }] };
    };
    const reads = await gate.whileClosed(() => fleet.fresh());
    const [first, second] = [await freeing(1), await freeing(2)];
    fleet.applyOwnWrite(first);
    gate.open();
    await Promise.all(reads);
    fleet.applyOwnWrite(second);
    assert.deepEqual(told, [[1], [1, 2]]);
  }, 'postgresql');
});

test('what fails where own writes are shown again fails one refresh, and then everything is loaded', async () => {
  await withHost(async ({ database, fleet }) => {
    const told = Promise.withResolvers<void>();
    fleet.watchRoom((freed) => {
      if (freed.length === 0) return;
      told.resolve();
      throw new Error('the listener failed');
    });
    const refreshed = fleet.fresh();
    const unread = { xid: '99999999', effects: [{ providerId: 1, bump: 0, used: [{ classId: 0, delta: 0 }] }] };
    fleet.applyOwnWrite(unread); // of a transaction that no refresh reads
    await sql`update inventories set total = total + 1`.execute(database.kysely);
    await refreshed;
    await told.promise;
    await nextIteration();
    await assert.rejects(fleet.fresh(), /the listener failed/);
    fleet.watchRoom(undefined);
    const { loads } = fleet.counts;
    assert.deepEqual(formOf(await fleet.fresh()), formOf((await loadFleet(database)).living.fleet));
    assert.equal(fleet.counts.loads, loads + 1);
  });
});

test('a refresh replaces expected effects, right or wrong', async () => {
  await withHost(async ({ database, fleet }) => {
    const xid = await claimed(database);
    fleet.applyOwnWrite({ xid, effects: [{ providerId: 1, bump: 5, used: [{ classId: 0, delta: 70 }] }] });
    const host = fleet.known.byId.get(1);
    assert.deepEqual([host?.generation, host?.inventories[0]?.used], [5, 70]);
    await fleet.fresh();
    assert.deepEqual([host?.generation, host?.inventories[0]?.used], [1, 1]);
  });
});

test('a held snapshot shows no own write, and after a new load it counts as a whole fleet that does not change', async () => {
  await withHost(async ({ database, fleet }) => {
    const before = fleet.known.byId.get(1);
    const held = fleet.hold(() => assert.fail('so little must be kept'));
    const xid = await claimed(database);
    fleet.applyOwnWrite({ xid, effects });
    const usages = () => [before, fleet.known.byId.get(1)].map((host) => host?.inventories[0]?.used);
    assert.deepEqual(usages(), [0, 1]);
    await fleet.fresh();
    assert.deepEqual(usages(), [0, 1]);
    assert.deepEqual(fleet.heldSnapshots, { held: 1, kept: 1 });
    await sql`insert into resource_providers (id, uuid, name, generation) values (2, 'q', 'q', 0)`.execute(
      database.kysely,
    );
    held.end();
    const later = fleet.hold(() => assert.fail('so little must be kept'));
    await sql`truncate resource_provider_traits`.execute(database.kysely); // then all is loaded
    await fleet.fresh();
    assert.equal(fleet.counts.loads, 2);
    const loaded = fleet.known.byId.get(1);
    await claim.execute(database.kysely);
    assert.equal((await fleet.fresh()).byId.get(1), loaded, 'nothing is copied for a snapshot of the former fleet');
    assert.deepEqual(fleet.heldSnapshots, { held: 1, kept: 1 });
    later.end();
  });
});

test('many expected writes cause a refresh without a request', async () => {
  await withHost(async ({ database, fleet }) => {
    const { refreshes } = fleet.counts;
    for (let i = 0; i < 200; i++) {
      const xid = await claimed(database);
      fleet.applyOwnWrite({ xid, effects });
      await database.pollSockets();
    }
    assert.ok(fleet.counts.refreshes > refreshes);
    assert.equal(fleet.known.byId.get(1)?.inventories[0]?.used, 200);
  });
});

test('a few expected writes cause a refresh as well, some time after the last one', async () => {
  await withHost(async ({ database, fleet }) => {
    const { refreshes } = fleet.counts;
    for (let written = 0; fleet.counts.refreshes === refreshes; written += 1) {
      assert.ok(written < 60, 'no refresh');
      const xid = await claimed(database);
      fleet.applyOwnWrite({ xid, effects });
      await sleep(50);
    }
  });
});

test('while refreshes fail claims are written, until too many expected effects need a refresh', async () => {
  await withFreshDatabase('embedded', async ({ settings }) => {
    const database = await openDatabase(settings);
    try {
      await insertHost.execute(database.kysely);
      await sql`update inventories set total = 10000`.execute(database.kysely);
      const fleet = await openFleet(database);
      const claims = openClaims(database, fleet, { conflictRetryCount: 0 });
      let written = 0;
      const write = async () => {
        await claims.write(claimOn('p', `consumer ${written}`, 1, { knownGeneration: null }));
        written += 1;
      };
      await write(); // now the owners are known
      await sql`alter table provider_changes_horizon rename to hidden`.execute(database.kysely);
      await assert.rejects(async () => {
        while (written < 3000) await write();
      }, /provider_changes_horizon/);
      assert.ok(written > 500, `only ${written} were written`);
      assert.ok(
        fleet.ownWrites.length <= written && fleet.ownWrites.length < 2000,
        `${fleet.ownWrites.length} own writes are shown`,
      );
      await sql`alter table hidden rename to provider_changes_horizon`.execute(database.kysely);
      for (let more = 0; more < 3; more += 1) await write();
      assert.ok(fleet.ownWrites.length < 10);
      assert.equal((await fleet.fresh()).byId.get(1)?.inventories[0]?.used, written);
      assert.deepEqual(formOf(fleet.known), formOf((await loadFleet(database)).living.fleet));
    } finally {
      await database.close();
    }
  });
});

test('exactly the transactions count as read that were committed before the newest transaction with rows', () => {
  const snapshot = { pgSnapshot: '100:200:120,150', lastXid: '180' };
  assert.deepEqual(
    ['99', '100', '119', '120', '150', '180', '181', '199', '200', '9999999999999'].map((xid) => isRead(snapshot, xid)),
    [true, true, true, false, false, true, false, false, false, false],
  );
  assert.equal(isRead({ pgSnapshot: '100:100:', lastXid: '99' }, '99'), true);
  assert.equal(isRead({ pgSnapshot: '100:100:', lastXid: '99' }, '100'), false);
});
