/** A process without file descriptors can neither connect to PostgreSQL nor read code: the client may repeat its request. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { startServer } from '../races/server_process.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { execute } from '../support/postgresql.ts';

/** Calls back with a service and a function that limits how many files it may open; what is open stays open, such as connections. */
const withLimitedServer = (
  use: (
    server: Awaited<ReturnType<typeof startServer>>,
    limit: (files: number) => void,
    connection: string,
  ) => Promise<void>,
): Promise<void> =>
  withFreshDatabase('postgresql', async ({ config }) => {
    const { connection } = config;
    assert.ok(connection);
    const server = await startServer(config);
    const limit = (files: number) => void execFileSync('prlimit', ['--pid', `${server.pid}`, `--nofile=${files}:`]);
    try {
      await use(server, limit, connection);
    } finally {
      await server.kill();
    }
  });

/** Sends a request when the connection of the one before is free again: the service could not accept another one. */
async function onSameConnection<T>(send: () => Promise<T>): Promise<T> {
  await setImmediate();
  return send();
}

test('requests are a 503 while the process has no file descriptor for a connection to PostgreSQL', () =>
  withLimitedServer(async (server, limit, connection) => {
    const make = (name: string) =>
      onSameConnection(() => server.client.send('POST', '/resource_providers', 28, { name }));
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
  withLimitedServer(async (server, limit) => {
    const path = '/allocation_candidates/explanation?resources=VCPU:1';
    const explain = () => onSameConnection(() => server.client.send('GET', path, '2.3'));
    assert.equal((await server.client.send('GET', '/resource_providers', '2.3')).status, 200);
    limit(3);
    for (const _ of [1, 2]) assert.equal((await explain()).status, 503);
    assert.equal(server.log(), '');
    limit(1000);
    assert.equal((await explain()).status, 200);
  }));
