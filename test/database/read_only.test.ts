/** A database that refuses writes, since `default_transaction_read_only` is on. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Writable } from 'node:stream';
import { after, before, suite, test } from 'node:test';
import { pino } from 'pino';
import { openService } from '../../src/start/service.ts';
import { claim, makeHost } from '../races/claimants.ts';
import { createDatabase, execute, type PostgresqlServer, startPostgresql } from '../support/postgresql.ts';
import { accepted, at, requestsTo } from '../support/requests.ts';
import { testConfig } from '../support/services.ts';
import { until } from '../support/until.ts';

suite('a database with default_transaction_read_only', () => {
  let server: PostgresqlServer;
  before(async () => {
    server = await startPostgresql();
  });
  after(() => server?.stop());

  const named = (url: string): string => new URL(url).pathname.slice(1);
  const settings: Readonly<Record<string, (url: string, value: 'on' | 'off') => string>> = {
    server: (_, value) => `alter system set default_transaction_read_only = ${value}`,
    database: (url, value) => `alter database ${named(url)} set default_transaction_read_only = ${value}`,
    role: (url, value) => `alter role postgres in database ${named(url)} set default_transaction_read_only = ${value}`,
  };

  for (const [of, statement] of Object.entries(settings)) {
    test(`with default_transaction_read_only of the ${of} the service answers reads only, and recovers when it is off`, async () => {
      const lines: string[] = [];
      const log = new Writable({ write: (chunk, _, done) => done(void lines.push(String(chunk))) });
      const { url } = await createDatabase(server.url);
      const connection = { ...testConfig().placementDatabase, connection: url, syncOnStartup: true };
      const service = await openService(testConfig({ placementDatabase: connection }), { logger: pino(log) });
      const set = async (value: 'on' | 'off'): Promise<void> => {
        await execute(server.url, statement(url, value));
        await execute(server.url, 'select pg_reload_conf()');
        // The setting of a database or a role is that of connections which are opened from now on.
        await execute(
          url,
          `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${named(url)}'
          and pid <> pg_backend_pid()`,
        );
      };
      try {
        const send = requestsTo(service);
        const host = await makeHost(send);
        assert.equal((await send('GET', '/readyz')).status, 200);
        await set('on');
        const isReadOnly = async () => (await send('GET', '/readyz')).text.startsWith('The database is read-only');
        await until('it is not ready', isReadOnly);
        for (const path of ['/readyz', '/healthcheck']) {
          const { status, text } = await send('GET', path);
          assert.deepEqual(
            [status, text],
            [503, 'The database is read-only: it is a standby, or default_transaction_read_only is on'],
          );
        }
        // Each process loads its fleet again, since its connections broke.
        for (const path of [`/resource_providers/${host}`, '/allocation_candidates?resources=VCPU:1']) {
          accepted(await send('GET', path));
        }
        for (let claims = 0; claims < 5; claims += 1) {
          const refused = await claim(send, host, randomUUID());
          assert.equal(refused.status, 503);
          assert.match(String(at(refused.json, 'errors', 0, 'detail')), /The database is read-only; please retry/);
        }
        await set('off');
        await until('it is ready', async () => (await send('GET', '/readyz')).status === 200);
        accepted(await claim(send, host, randomUUID()));
        const readOnly = lines.filter((line) => line.includes('The database is read-only'));
        assert.equal(readOnly.length, 1, `it is logged once: ${lines.join('')}`);
      } finally {
        await service.close();
        await execute(server.url, 'alter system reset default_transaction_read_only');
        await execute(server.url, 'select pg_reload_conf()');
      }
    });
  }

  test('is ready again when it is off, though a connection was opened while it was on', async () => {
    const { url } = await createDatabase(server.url);
    const connection = { ...testConfig().placementDatabase, connection: url, syncOnStartup: true, maxPoolSize: 1 };
    const service = await openService(testConfig({ placementDatabase: connection }));
    try {
      const send = requestsTo(service);
      const host = await makeHost(send);
      await execute(server.url, `alter database ${named(url)} set default_transaction_read_only = on`);
      await execute(
        url,
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${named(url)}'
        and pid <> pg_backend_pid()`,
      );
      await until('it is not ready', async () => (await send('GET', '/readyz')).status === 503);
      // This session has the setting for good, and no program ends it.
      await execute(server.url, `alter database ${named(url)} reset default_transaction_read_only`);
      await until('it is ready', async () => (await send('GET', '/readyz')).status === 200);
      accepted(await claim(send, host, randomUUID()));
    } finally {
      await service.close();
    }
  });
});
