/**
 * One process has a fleet that is a moment old: since its last refresh another process, or another program, has changed one thing. Then
 * it gets one claim by query. The outcome must be one that a freshly loaded process could have.
 *
 * In the suite it makes 100 steps, and more as long as some seconds have not passed. STEPS=10000 npm test -- test/stale makes so many.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { openDatabase } from '../../db/engine/connect.ts';
import { readConsumers } from '../../db/statements/claims/read_allocations.ts';
import { type Claim, ClaimRefused } from '../../src/claims/claim.ts';
import { openClaims } from '../../src/claims/claims.ts';
import { pending, readBy } from '../../src/claims/pending_claim.ts';
import { openFleet } from '../../src/fleet/keep/keeper.ts';
import { loadFleet } from '../../src/fleet/keep/load.ts';
import { type Random, randomFrom, seedFor } from '../races/random.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';
import { changeOnce } from './changes.ts';
import { randomClaim } from './claims.ts';
import { complaintAbout } from './possible.ts';
import { makeWorld, readWorld, subjectOf } from './world.ts';

const steps = Number(process.env.STEPS ?? 100);
const timeMs = process.env.STEPS === undefined ? 15_000 : 0;

/** How many steps came to what, and how many claims lost a guard. */
type Tally = { readonly outcomes: Map<string, number>; retries: number };

async function makeSteps(random: Random, tally: Tally): Promise<void> {
  await withFreshDatabase('postgresql', async (fresh) => {
    if (!('connection' in fresh.settings)) throw new Error('Two processes need a PostgreSQL server.');
    const other = await openServiceOn(fresh);
    const database = await openDatabase(fresh.settings);
    const client = new pg.Client({ connectionString: fresh.settings.connection });
    await client.connect();
    try {
      const send = requestsTo(other, 'placement 2.6');
      await makeWorld(send);
      const fleet = await openFleet(database);
      const onRetry = () => {
        tally.retries += 1;
      };
      const claims = openClaims(database, fleet, { conflictRetryCount: 3, onRetry });
      const started = performance.now();
      for (let step = 1; step <= steps || performance.now() - started < timeMs; step += 1) {
        const [world] = await Promise.all([readWorld(client), fleet.fresh()]);
        const touched = new Set<string>();
        const change = await changeOnce({ send, database: other.database, client, random, world, touched });
        const now = await readWorld(client);
        const claim = randomClaim(random, { before: world, subject: subjectOf(world, touched), now });
        const [{ living }, states] = await Promise.all([
          loadFleet(other.database),
          readConsumers(other.database, readBy(pending(claim)), true),
        ]);
        const outcome = await claims.write(claim).catch((error: unknown) => {
          if (error instanceof ClaimRefused) return error;
          throw error;
        });
        const reason = outcome instanceof ClaimRefused ? outcome.reason : 'written';
        tally.outcomes.set(reason, (tally.outcomes.get(reason) ?? 0) + 1);
        const complaint = complaintAbout(living.fleet, claim, states, outcome);
        if (complaint !== undefined) assert.fail(`step ${step}, after ${change}: ${complaint}\n${described(claim)}`);
      }
    } finally {
      await client.end();
      await database.close();
      await other.close();
    }
  });
}

const described = ({ consumers }: Claim): string =>
  JSON.stringify(
    consumers.map(({ queries, allocations, ...rest }) => ({
      ...rest,
      allocations: [...allocations].map(([uuid, amounts]) => [uuid, ...amounts]),
      requests: queries?.map(({ request }) => ({
        ...request,
        groups: request.groups.map((group) => ({ ...group, resources: [...group.resources] })),
        sameSubtrees: request.sameSubtrees.map((each) => [...each]),
      })),
    })),
    undefined,
    2,
  );

test('after any change by other programs, a claim by query is one that a freshly loaded process could make', async (t) => {
  const tally: Tally = { outcomes: new Map(), retries: 0 };
  await makeSteps(randomFrom(seedFor(t)), tally);
  const of = (reason: string) => tally.outcomes.get(reason) ?? 0;
  t.diagnostic(
    `${[...tally.outcomes].map(([reason, count]) => `${count} ${reason}`).join(', ')}; ${tally.retries} lost guards`,
  );
  // Claims that were judged on the old fleet, and would have been written without their guards.
  assert.ok(tally.retries > 0 && of('written') > 0 && of('no candidates') > 0);
});
