/** Another program holds the row of a host that fits. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { openClaims } from '../../src/claims/claims.ts';
import { openFleet } from '../../src/fleet/keep/keeper.ts';
import { untilWaiting, withTwoConnections } from '../races/two_connections.ts';
import { byQuery } from './by_query.ts';

test('consumers are placed on other hosts, and wait for a locked host only where there is no other host', async () => {
  await withTwoConnections(async ({ database, other }) => {
    const claims = openClaims(database, await openFleet(database), { conflictRetryCount: 10 });
    await other.query('begin; select from resource_providers where id = 1 for update');
    const place = async (count: number) => {
      const outcomes = await Promise.all(
        Array.from({ length: count }, () => claims.write(byQuery([randomUUID()], 'resources=VCPU:1'))),
      );
      return outcomes.flatMap(({ consumers }) => consumers.flatMap(({ allocations }) => [...allocations.keys()]));
    };
    // One by one and together: about half of them choose the locked host at first.
    const placed = [...(await place(1)), ...(await place(1)), ...(await place(1)), ...(await place(7))];
    assert.deepEqual(new Set(placed), new Set(['rp2']));
    const waiting = place(1);
    await untilWaiting(other);
    await other.query('commit');
    assert.deepEqual(await waiting, ['rp1']);
  });
});
