/** A process without file descriptors can neither connect to PostgreSQL nor read code: the client may repeat its request. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { openClient } from '../races/client.ts';
import { startServer } from '../races/server_process.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { execute } from '../support/postgresql.ts';

/** Calls back with a service and a function that limits how many files it may open; what is open stays open, such as connections. */
const withLimitedServer = (
  use: (
    server: Awaited<ReturnType<typeof startServer>>,
    send: ReturnType<typeof openClient>['send'],
    limit: (files: number) => void,
    connection: string,
  ) => Promise<void>,
): Promise<void> =>
  withFreshDatabase('postgresql', async ({ config }) => {
    const { connection } = config;
    assert.ok(connection);
    const server = await startServer(config);
    // All requests come on one connection: the service could not accept another one.
    const client = openClient(server.url, 1);
    const limit = (files: number) => void execFileSync('prlimit', ['--pid', `${server.pid}`, `--nofile=${files}:`]);
    try {
      await use(server, client.send, limit, connection);
    } catch (error) {
      // A connection that broke tells nothing of why.
      throw new Error(`${error}. The server logged: ${server.log()}`, { cause: error });
    } finally {
      client.close();
      await server.kill();
    }
  });

test('requests are a 503 while the process has no file descriptor for a connection to PostgreSQL', () =>
  withLimitedServer(async (server, send, limit, connection) => {
    const make = (name: string) => send('POST', '/resource_providers', 28, { name });
    assert.equal((await make('first')).status, 200);
    limit(3);
    await execute(
      connection,
      `select pg_terminate_backend(pid, 10000) from pg_stat_activity
        where application_name = 'placement' and datname = current_database()`,
    );
    assert.equal((await make('second')).status, 503);
    assert.equal(server.log(), '');
    limit(1000);
    assert.equal((await make('second')).status, 200);
  }));

test('the first explanation is a 503 while its code cannot be read, and is made afterwards', () =>
  withLimitedServer(async (server, send, limit) => {
    const path = '/allocation_candidates/explanation?resources=VCPU:1';
    const explain = () => send('GET', path, '2.3');
    assert.equal((await send('GET', '/resource_providers', '2.3')).status, 200);
    limit(3);
    for (const _ of [1, 2]) assert.equal((await explain()).status, 503);
    assert.equal(server.log(), '');
    limit(1000);
    assert.equal((await explain()).status, 200);
  }));
