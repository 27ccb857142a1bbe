/** Two claims of a batch want the last place. The one that gets it loses its guard, so the other one has it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Database } from '../../db/engine/connect.ts';
import type { Claim, ClaimRefused } from '../../src/claims/claim.ts';
import { openClaims } from '../../src/claims/claims.ts';
import { openFleet } from '../../src/fleet/keep/keeper.ts';
import { byQuery } from '../placing/by_query.ts';
import { claimOn } from '../support/claims.ts';
import { withTwoConnections } from './two_connections.ts';

const [first, second] = ['aaaaaaaa-0000-4000-8000-000000000001', 'aaaaaaaa-0000-4000-8000-000000000002'];
const trait = 'HW_CPU_X86_AVX2';

/** A claim of 10 VCPU on a host with the trait, or else on any. */
function byQueries(uuid: string): Claim {
  const claim = byQuery([uuid], `resources=VCPU:10&required=${trait}`);
  const others = byQuery([uuid], 'resources=VCPU:10').consumers.flatMap(({ queries = [] }) => queries);
  const consumers = claim.consumers.map((each) => ({ ...each, queries: [...(each.queries ?? []), ...others] }));
  return { ...claim, consumers };
}

const kinds: Readonly<Record<string, (uuid: string) => Claim>> = {
  'by queries, of which the first one fits nowhere else': byQueries,
  'by claims that name the host': (uuid) => claimOn('rp1', uuid, 10, { knownGeneration: null }),
};

for (const [kind, claimOf] of Object.entries(kinds)) {
  test(`where the claim that gets the last place loses its guard, the other one of its batch is written: ${kind}`, async () => {
    await withTwoConnections(async ({ database, other }) => {
      await other.query(`insert into resource_provider_traits (resource_provider_id, trait_id)
        select 1, id from traits where name = '${trait}';
        insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (1, 0, 'theirs', 10)`);
      const fleet = await openFleet(database);
      // The known fleet shows the host as full: both claims are judged again together, on a fresh one.
      await other.query('delete from allocations');
      let writes = 0;
      const transaction = async (...args: Parameters<Database['transaction']>) => {
        writes += 1;
        if (writes === 1) await other.query('update resource_providers set generation = generation + 1 where id = 1');
        return database.transaction(...args);
      };
      // The cast is right: it returns what `database.transaction` returns for the same statements.
      const disturbed = { ...database, transaction: transaction as Database['transaction'] };
      const claims = openClaims(disturbed, fleet, { conflictRetryCount: 0 });
      const outcomes = await Promise.allSettled([first, second].map((uuid) => claims.write(claimOf(uuid))));
      const reasons = outcomes.map((outcome) =>
        // Claims are rejected with nothing else; another error has no reason.
        outcome.status === 'rejected' ? (outcome.reason as ClaimRefused).reason : 'written',
      );
      assert.deepEqual(reasons.toSorted(), ['concurrent update', 'written']);
      const { rows } = await other.query('select resource_provider_id as provider, used from allocations');
      assert.deepEqual(rows, [{ provider: 1, used: 10 }]);
    });
  });
}
