import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { ClaimRefused } from '../../src/claims/claim.ts';
import { openClaims } from '../../src/claims/claims.ts';
import { type FleetKeeper, openFleet } from '../../src/fleet/keep/keeper.ts';
import { claimOn } from '../support/claims.ts';
import { withFreshDatabase } from '../support/engines.ts';

type Run = (...statements: readonly string[]) => Promise<void>;

/** Calls back with a host of 10 VCPU, at generation 5. */
async function withHost(use: (fleet: FleetKeeper, database: Database, run: Run) => Promise<void>): Promise<void> {
  await withFreshDatabase('embedded', async ({ settings }) => {
    const database = await openDatabase(settings);
    const run: Run = async (...statements) => {
      for (const statement of statements) await sql.raw(statement).execute(database.kysely);
    };
    try {
      await run(
        `insert into resource_providers (id, uuid, name, generation) values (1, 'p', 'p', 5)`,
        `insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
           allocation_ratio) values (1, 0, 10, 0, 1, 10, 1, 1)`,
      );
      await use(await openFleet(database), database, run);
    } finally {
      await database.close();
    }
  });
}

/** Changes what the next server has, as if transactions were lost: here no trigger logs it. */
const unlogged = (run: Run, statement: string): Promise<void> =>
  run(`set session_replication_role = 'replica'`, statement, `set session_replication_role = 'origin'`);

/** The server differs from the one before only in its start time. */
const failOver = (run: Run): Promise<void> =>
  run(
    `create function public.pg_postmaster_start_time() returns timestamptz language sql return timestamptz '2100-01-01'`,
    'set search_path = public, pg_catalog',
  );

test('a process that was idle during a failover does not trust data of the former server', async () => {
  await withHost(async (fleet, _database, run) => {
    await unlogged(run, 'update resource_providers set generation = 4');
    assert.equal((await fleet.fresh()).byId.get(1)?.generation, 5, 'otherwise this test proves nothing');
    await failOver(run);
    assert.equal((await fleet.fresh()).byId.get(1)?.generation, 4);
  });
});

test('a claim that was judged by data of the former server is judged again, even at the same generation', async () => {
  await withHost(async (fleet, database, run) => {
    await unlogged(
      run,
      `insert into allocations (resource_provider_id, resource_class_id, consumer_id, used) values (1, 0, 'other', 8)`,
    );
    await failOver(run);
    const claim = claimOn('p', '00000000-0000-4000-8000-00000000000c', 8, { knownGeneration: null });
    await assert.rejects(
      openClaims(database, fleet, { conflictRetryCount: 10 }).write(claim),
      (error) => error instanceof ClaimRefused && error.reason === 'invalid inventory',
    );
  });
});
