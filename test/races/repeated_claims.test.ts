/** How often a claim is judged again that lost a guard, and by what the claim after a reshape is judged. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Database } from '../../db/engine/connect.ts';
import { type Claim, ClaimRefused } from '../../src/claims/claim.ts';
import { openClaims } from '../../src/claims/claims.ts';
import { openFleet } from '../../src/fleet/keep/keeper.ts';
import { claimOn } from '../support/claims.ts';
import { withTwoConnections } from './two_connections.ts';

/** The database, before each of whose transactions something happens. */
const beforeEach = (database: Database, happens: () => Promise<unknown>): Database => ({
  ...database,
  // The cast is right: it returns what `database.transaction` returns for the same statements.
  transaction: (async (...args: Parameters<Database['transaction']>) => {
    await happens();
    return database.transaction(...args);
  }) as Database['transaction'],
});

for (const conflictRetryCount of [0, 1, 3]) {
  test(`a claim that loses a guard each time is repeated ${conflictRetryCount} times, and then refused`, async () => {
    await withTwoConnections(async ({ database, other }) => {
      let [sent, retries] = [0, 0];
      const watched = beforeEach(database, async () => {
        sent += 1;
        // Another program writes the inventories as they are, without raising the generation.
        await other.query('update inventories set total = total');
      });
      const onRetry = () => {
        retries += 1;
      };
      const claims = openClaims(watched, await openFleet(database), { conflictRetryCount, onRetry });
      await claims.write(claimOn('rp2', 'first', 0)).catch(() => {}); // its owners are made
      [sent, retries] = [0, 0];
      await assert.rejects(
        claims.write(claimOn('rp1', 'new', 1)),
        (error) => error instanceof ClaimRefused && error.reason === 'concurrent update',
      );
      assert.deepEqual({ sent, retries }, { sent: conflictRetryCount + 1, retries: conflictRetryCount });
      assert.equal((await other.query(`select from consumers where uuid = 'new'`)).rowCount, 0);
    });
  });
}

/** Changes the inventories of provider 1. */
const reshape = (total: number): Claim => {
  const fields = { total, reserved: 0, minUnit: 1, maxUnit: total, stepSize: 1, allocationRatio: 1 };
  const inventories = new Map([['VCPU', fields]]);
  return { consumers: [], inventories: [{ providerUuid: 'rp1', knownGeneration: 5, inventories }] };
};

for (const [what, total, amount] of [
  ['larger', 20, 15],
  ['smaller', 4, 3],
] as const) {
  test(`a claim right after a reshape is judged by the new inventories at once: ${what}`, async () => {
    await withTwoConnections(async ({ database }) => {
      const fleet = await openFleet(database);
      let retries = 0;
      const onRetry = () => {
        retries += 1;
      };
      const claims = openClaims(database, fleet, { conflictRetryCount: 5, onRetry });
      await claims.write(reshape(total));
      const { refreshes } = fleet.counts;
      await claims.write(claimOn('rp1', 'new', amount));
      assert.equal(retries, 0);
      assert.equal(fleet.counts.refreshes, refreshes + 1);
    });
  });
}
