/** A process without file descriptors cannot connect to PostgreSQL: the client may repeat its request. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { startServer } from '../races/server_process.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { execute } from '../support/postgresql.ts';

test('requests are a 503 while the process has no file descriptor for a connection to PostgreSQL', async () => {
  await withFreshDatabase('postgresql', async ({ config }) => {
    const { connection } = config;
    assert.ok(connection);
    const server = await startServer(config);
    const limit = (files: number) => execFileSync('prlimit', ['--pid', `${server.pid}`, `--nofile=${files}:`]);
    const make = (name: string) => server.client.send('POST', '/resource_providers', 28, { name });
    try {
      assert.equal((await make('first')).status, 200);
      limit(3); // what is open stays open, such as the connection of the client
      await execute(
        connection,
        `select pg_terminate_backend(pid, 10000) from pg_stat_activity
          where application_name = 'placement' and datname = current_database()`,
      );
      assert.equal((await make('second')).status, 503);
      assert.equal(server.log(), '');
      limit(1000);
      assert.equal((await make('second')).status, 200);
    } finally {
      await server.kill();
    }
  });
});
