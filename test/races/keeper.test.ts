/**
 * Many callers at the same time: refreshes run one after another, are shared, and include everything that was committed
 * before a call.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '../../db/engine/connect.ts';
import { openFleet } from '../../src/fleet/keep/keeper.ts';
import { loadFleet } from '../../src/fleet/keep/load.ts';
import { engines, withFreshDatabase } from '../support/engines.ts';
import { until } from '../support/until.ts';
import { formOf } from './fleet_form.ts';

for (const engine of engines) {
  test(`a change of usage counts once, however many calls come at the same time, on ${engine}`, async () => {
    await withFreshDatabase(engine, async ({ settings }) => {
      const database = await openDatabase(settings);
      try {
        await sql`insert into resource_providers (id, uuid, name, generation) values (1, 'p', 'p', 0)`.execute(
          database.kysely,
        );
        await sql`insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit,
          step_size, allocation_ratio) values (1, 0, 1000, 0, 1, 1000, 1, 1)`.execute(database.kysely);
        const fleet = await openFleet(database);
        let written = 0;
        let writing = true;
        const usage = async () => (await fleet.fresh()).byId.get(1)?.inventories[0]?.used;
        // Each caller calls again as soon as it has its answer.
        const asking = [1, 2, 3, 4].map(async () => {
          while (writing) {
            const before = written;
            const used = (await fleet.fresh()).byId.get(1)?.inventories[0]?.used ?? 0;
            assert.ok(used >= before, `${before} units were written before the call, ${used} are in the answer`);
          }
        });
        for (let i = 0; i < 200; i++) {
          await sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
            values (1, 0, 'c', 1)`.execute(database.kysely);
          written += 1;
        }
        writing = false;
        await Promise.all(asking);
        assert.equal(await usage(), 200);
        assert.deepEqual(formOf(await fleet.fresh()), formOf((await loadFleet(database)).living.fleet));

        const { refreshes } = fleet.counts;
        await Promise.all(Array.from({ length: 100 }, () => fleet.fresh()));
        assert.equal(fleet.counts.refreshes - refreshes, 1, 'calls that come before a refresh begins share it');
      } finally {
        await database.close();
      }
    });
  });
}

test('a failed refresh fails for all calls that wait for it, and the next one works', async () => {
  await withFreshDatabase('postgresql', async ({ settings }) => {
    const database = await openDatabase(settings);
    try {
      const fleet = await openFleet(database);
      await sql`alter table provider_changes rename to hidden`.execute(database.kysely);
      const answers = await Promise.allSettled([fleet.fresh(), fleet.fresh(), fleet.fresh()]);
      assert.deepEqual(
        answers.map(({ status }) => status),
        ['rejected', 'rejected', 'rejected'],
      );
      await sql`alter table hidden rename to provider_changes`.execute(database.kysely);
      await sql`insert into resource_providers (uuid, name, generation) values ('p', 'p', 0)`.execute(database.kysely);
      assert.ok((await fleet.fresh()).byName.has('p'));
    } finally {
      await database.close();
    }
  });
});

for (const engine of engines) {
  test(`changes that came with a dump of another server count once, on ${engine}`, async () => {
    await withFreshDatabase(engine, async ({ settings }) => {
      const database = await openDatabase(settings);
      try {
        const run = (statement: string) => sql.raw(statement).execute(database.kysely);
        await run(`insert into resource_providers (id, uuid, name, generation) values (1, 'p', 'p', 0)`);
        await run(`insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit,
          step_size, allocation_ratio) values (1, 0, 1000, 0, 1, 1000, 1, 1)`);
        await run(`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
          values (1, 0, 'c', 6)`);
        const later = `(pg_current_xact_id()::text::bigint + 1000000)::text::xid8`;
        await run(`update provider_changes set xid = ${later}`);
        await run(`update provider_changes_horizon set xid = ${later}`);
        const fleet = await openFleet(database);
        const usage = async () => (await fleet.fresh()).byId.get(1)?.inventories[0]?.used;
        assert.deepEqual([await usage(), await usage(), await usage()], [6, 6, 6]);
        // As soon as no earlier transaction is open in any database of the server, nothing is loaded as a whole any
        // more.
        const loadsOfOne = async (): Promise<number> => {
          const { loads } = fleet.counts;
          await usage();
          return fleet.counts.loads - loads;
        };
        await until('it is not loaded whole any more', async () => (await loadsOfOne()) === 0);
      } finally {
        await database.close();
      }
    });
  });
}
