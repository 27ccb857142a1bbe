/**
 * Programs that change inventories without raising the provider's generation: the very next claim is judged by the new
 * inventories.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '../../db/engine/connect.ts';
import { ClaimRefused } from '../../src/claims/claim.ts';
import { openClaims } from '../../src/claims/claims.ts';
import { openFleet } from '../../src/fleet/keep/keeper.ts';
import { claimOn } from '../support/claims.ts';
import { anyEngine, withFreshDatabase } from '../support/engines.ts';

const changes: Readonly<Record<string, string>> = {
  'a smaller total': 'update inventories set total = 4 where resource_provider_id = 1',
  'a larger unit': 'update inventories set min_unit = 6 where resource_provider_id = 1',
  'a deletion': 'delete from inventories where resource_provider_id = 1',
  'a TRUNCATE': 'truncate inventories',
};

for (const [change, statement] of Object.entries(changes)) {
  test(`the claim after ${change} is refused, and other claims cost no more than before`, async (t) => {
    // An own write that is shown half a second after the last refresh begins one: on a busy machine these claims take that long.
    const nowMs = performance.now();
    t.mock.method(performance, 'now', () => nowMs);
    await withFreshDatabase(anyEngine, async ({ settings }) => {
      const database = await openDatabase(settings);
      const run = (text: string) => sql.raw(text).execute(database.kysely);
      try {
        for (const id of [1, 2]) {
          await run(
            `insert into resource_providers (id, uuid, name, generation) values (${id}, 'p${id}', 'p${id}', 5)`,
          );
          await run(`insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit,
            step_size, allocation_ratio) values (${id}, 0, 10, 0, 1, 10, 1, 1)`);
        }
        const fleet = await openFleet(database);
        const claims = openClaims(database, fleet, { conflictRetryCount: 10 });
        let consumers = 0;
        const claim = (provider: string, amount: number) =>
          claims.write(claimOn(provider, `consumer ${consumers++}`, amount, { knownGeneration: null }));
        // The snapshot of the fleet is older than its own writes.
        for (let count = 0; count < 3; count += 1) await claim('p2', 1);
        assert.equal(fleet.counts.refreshes, 0, 'otherwise this test proves less');
        await run(statement);
        await assert.rejects(
          claim('p1', 5),
          (error) => error instanceof ClaimRefused && error.reason === 'invalid inventory',
        );
        const { rows } = await sql`select from allocations where resource_provider_id = 1`.execute(database.kysely);
        assert.equal(rows.length, 0);
        if (change !== 'a TRUNCATE') {
          const { refreshes } = fleet.counts;
          for (let count = 0; count < 3; count += 1) await claim('p2', 1);
          assert.equal(fleet.counts.refreshes, refreshes);
        }
      } finally {
        await database.close();
      }
    });
  });
}
