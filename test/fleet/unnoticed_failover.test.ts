import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '../../db/connect.ts';
import { openFleet } from '../../src/fleet/keeper.ts';
import { withFreshDatabase } from '../engines.ts';

test('a process that asked nothing during a failover does not trust what it saw on the other server', async () => {
  await withFreshDatabase('embedded', async ({ settings }) => {
    const database = await openDatabase(settings);
    const run = async (...statements: readonly string[]) => {
      for (const statement of statements) await sql.raw(statement).execute(database.kysely);
    };
    try {
      await run(`insert into resource_providers (id, uuid, name, generation) values (1, 'p', 'p', 5)`);
      const fleet = await openFleet(database);
      // A change that was lost with the other server: here nothing logs that it is not there.
      await run(
        `set session_replication_role = 'replica'`,
        'update resource_providers set generation = 4',
        `set session_replication_role = 'origin'`,
      );
      assert.equal((await fleet.fresh()).byId.get(1)?.generation, 5, 'or this test proves nothing');
      // It is another server in nothing but the time at which it started.
      await run(
        `create function public.pg_postmaster_start_time() returns timestamptz language sql return now() + '1 day'`,
        'set search_path = public, pg_catalog',
      );
      assert.equal((await fleet.fresh()).byId.get(1)?.generation, 4);
    } finally {
      await database.close();
    }
  });
});
