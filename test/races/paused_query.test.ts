/**
 * Other requests have their turns while the names of a long query are looked up, and the fleet changes: the answer is of one snapshot
 * nevertheless.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import type { HeldSnapshot } from '../../src/fleet/model/held_snapshots.ts';
import { openTurns } from '../../src/request/turns.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { accepted, at, makeProvider } from '../support/requests.ts';
import { withTwoServices } from '../support/two_services.ts';
import { numberedUuid } from '../support/uuids.ts';

const [host, consumer] = [numberedUuid(1), numberedUuid(2)];
/** After 16 groups the names are looked up in the next turn, where this turn is over. */
const query = Array.from({ length: 17 }, (_, n) => `resources_${n}=VCPU:1&in_tree_${n}=${host}`).join('&');
const candidates = `/allocation_candidates?${query}&group_policy=none`;

/** From now on the next query pauses, and the fleet changes during the pause. */
function changeInPause({ fleet }: PlacementService, change: () => Promise<unknown>): void {
  const { fresh } = fleet;
  let refreshes = 0;
  fleet.fresh = async () => {
    refreshes += 1;
    if (refreshes === 2) {
      await change();
      fleet.fresh = fresh;
    }
    const current = await fresh();
    // Another request uses up the time of this iteration of the event loop.
    if (refreshes === 1) {
      const turns = openTurns();
      turns.begin();
      for (const endMs = performance.now() + 15; performance.now() < endMs; );
      turns.end();
    }
    return current;
  };
}

const changes = {
  'a held snapshot shows the tree that changes': 'update inventories set total = 300',
  'all is loaded anew': 'truncate resource_provider_traits; update inventories set total = 300',
} as const;

for (const [what, statements] of Object.entries(changes)) {
  for (const more of ['', `&with=${consumer}`]) {
    test(`${what} while a query${more === '' ? '' : ' beside a consumer'} waits for its turn`, async () => {
      await withTwoServices(async ({ services: [service], send }) => {
        await makeProvider(send, host, { VCPU: { total: 200 } });
        const body = { allocations: { [host]: { resources: { VCPU: 1 } } }, project_id: 'p', user_id: 'u' };
        accepted(
          await send('PUT', `/allocations/${consumer}`, { ...body, consumer_generation: null, consumer_type: 'X' }),
        );
        let held: HeldSnapshot | undefined;
        changeInPause(service, async () => {
          held = service.fleet.hold(() => {}); // for a long answer
          await sql.raw(statements).execute(service.database.kysely);
        });
        const { json } = accepted(await send('GET', candidates + more).finally(() => held?.end()));
        assert.ok(held, 'the query did not pause');
        assert.equal(at(json, 'allocation_requests', 'length'), 1);
        assert.deepEqual(at(json, 'provider_summaries', host, 'resources', 'VCPU'), { capacity: 300, used: 1 });
      });
    });
  }
}
