/** The service behind PgBouncer in transaction mode: each transaction may run on another connection of the server. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { suite, test } from 'node:test';
import pg from 'pg';
import { pino } from 'pino';
import { openService } from '../../src/start/service.ts';
import { openSwitch } from '../races/switch.ts';
import { untilWaitingFor } from '../races/two_connections.ts';
import { postgresqlServer, withFreshDatabase } from '../support/engines.ts';
import { carriesPreparedStatements, hasPgbouncer, type Pgbouncer, startPgbouncer } from '../support/pgbouncer.ts';
import { createDatabase, databaseUrl, execute } from '../support/postgresql.ts';
import { accepted, at, makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { testConfig } from '../support/services.ts';
import { until } from '../support/until.ts';

const clients = 8;
const rounds = 12;

const openBehind = ({ url }: Pgbouncer, options: { readonly [name: string]: boolean | number } = {}) =>
  openService(testConfig({ placementDatabase: { connection: url, ...options } }));

/** One after the other: a claim by name, one by query, reads, a write of inventories, and the release of one claim. */
async function writeAndRead(send: Send, host: string): Promise<void> {
  const own = randomUUID();
  await makeProvider(send, own, { VCPU: { total: 4 } });
  for (let round = 1; round <= rounds; round += 1) {
    const [kept, released] = [randomUUID(), randomUUID()];
    accepted(await send('PUT', `/allocations/${kept}`, newClaim({ [host]: { VCPU: 1 } })));
    const { allocations: _, ...byQuery } = newClaim({});
    const wanted = { ...byQuery, candidates: `resources=VCPU:1&in_tree=${host}` };
    accepted(await send('PUT', `/allocations/${released}`, wanted, 'placement 2.4'));
    const held = accepted(await send('GET', `/allocations/${released}`)).json;
    assert.equal(at(held, 'allocations', host, 'resources', 'VCPU'), 1);
    accepted(await send('DELETE', `/allocations/${released}`));
    accepted(await send('GET', '/allocation_candidates?resources=VCPU:1&limit=3'));
    const stock = { resource_provider_generation: round, inventories: { VCPU: { total: 4 + round } } };
    accepted(await send('PUT', `/resource_providers/${own}/inventories`, stock));
    const traits = { resource_provider_generation: round + 1, traits: [] };
    if (round === rounds) accepted(await send('PUT', `/resource_providers/${own}/traits`, traits));
  }
}

async function serves(options: { readonly preparedStatements: boolean }): Promise<void> {
  await withFreshDatabase('postgresql', async ({ config: { connection = '' } }) => {
    const carrying = options.preparedStatements ? { max_prepared_statements: 100 } : {};
    const pgbouncer = await startPgbouncer(connection, { default_pool_size: 3, ...carrying });
    const service = await openBehind(pgbouncer, options);
    const other = await openBehind(pgbouncer, options);
    try {
      const [send, otherSend] = [requestsTo(service), requestsTo(other)];
      const host = randomUUID();
      await makeProvider(send, host, { VCPU: { total: 1000 } });
      const all = Array.from({ length: clients }, (_, index) => writeAndRead(index % 2 ? send : otherSend, host));
      await Promise.all(all);
      for (const each of [send, otherSend]) {
        const { json } = accepted(await each('GET', `/resource_providers/${host}/usages`));
        assert.equal(at(json, 'usages', 'VCPU'), clients * rounds);
      }
    } finally {
      await other.close();
      await service.close();
      await pgbouncer.stop();
    }
  });
}

suite('behind PgBouncer in transaction mode', { skip: hasPgbouncer() ? false : 'pgbouncer is not installed' }, () => {
  test('requests are served without prepared statements', () => serves({ preparedStatements: false }));

  const tooOld = carriesPreparedStatements() ? false : 'this PgBouncer is older than 1.21';
  test('requests are served with prepared statements', { skip: tooOld }, () => serves({ preparedStatements: true }));

  test('a password that PgBouncer no longer takes fails no request while connections are open', () =>
    withFreshDatabase('postgresql', async ({ config: { connection = '' } }) => {
      const { username } = new URL(connection);
      const pgbouncer = await startPgbouncer(connection, { admin_users: username });
      const service = await openBehind(pgbouncer, { preparedStatements: false });
      const console = new pg.Client({ connectionString: databaseUrl(pgbouncer.url, 'pgbouncer') });
      try {
        const send = requestsTo(service);
        const host = randomUUID();
        await makeProvider(send, host, { VCPU: { total: 1000 } });
        await console.connect();
        const { rows } = await console.query<{ key: string; value: string }>('show config');
        await writeFile(rows.find(({ key }) => key === 'auth_file')?.value ?? '', `"${username}" "another"\n`);
        await console.query('reload');
        for (let round = 0; round < 3; round += 1) {
          const claims = Array.from({ length: 30 }, async () => {
            accepted(await send('GET', `/allocations/${randomUUID()}`));
            accepted(await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 1 } })));
          });
          await Promise.all(claims);
        }
      } finally {
        await console.end();
        await service.close();
        await pgbouncer.stop();
      }
    }));

  test('where it does not support prepared statements, requests are 503, and the log names the option once', () =>
    withFreshDatabase('postgresql', async ({ config: { connection = '' } }) => {
      // As before 1.21, whatever the version.
      const pgbouncer = await startPgbouncer(connection, {
        default_pool_size: 2,
        ...(carriesPreparedStatements() ? { max_prepared_statements: 0 } : {}),
      });
      const lines: { readonly level: string; readonly msg: string }[] = [];
      const log = { write: (line: string) => void lines.push(JSON.parse(line)) };
      const logger = pino({ formatters: { level: (level) => ({ level }) } }, log);
      const service = await openService(testConfig({ placementDatabase: { connection: pgbouncer.url } }), { logger });
      const other = () => new pg.Client({ connectionString: pgbouncer.url });
      const others = [other(), other()] as const;
      try {
        const send = requestsTo(service);
        const host = randomUUID();
        await makeProvider(send, host, { VCPU: { total: 100 } });
        const refused = new Set<string>();
        const claim = async () => {
          const { status, json } = await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 1 } }));
          refused.add(status === 204 ? '' : `${status} ${at(json, 'errors', 0, 'detail')}`);
        };
        // A transaction of another client keeps one of both connections of the server: claims take the other one. The
        // second transaction keeps that one, so that the next claims take the one which never saw their statements.
        for (const client of others) {
          await client.connect();
          await client.query('begin');
          if (client === others[1]) await others[0].query('rollback');
          for (let turn = 0; turn < 10; turn += 1) await claim();
        }
        const [reason, ...more] = [...refused].filter(Boolean);
        assert.match(
          reason ?? '',
          /^503 [\s\S]*A pooler of database connections does not support prepared statements; the log has/,
        );
        assert.deepEqual(more, []);
        const warnings = lines.filter(({ level, msg }) => level !== 'info' && msg !== 'Slow statement');
        assert.equal(warnings.length, 1, JSON.stringify(warnings));
        assert.match(warnings[0]?.msg ?? '', /Set \[placement_database\] prepared_statements = false and restart/);
      } finally {
        for (const client of others) await client.end();
        await service.close();
        await pgbouncer.stop();
      }
    }));

  test('processes that start together migrate once, and leave no lock behind', async () => {
    const database = await createDatabase(await postgresqlServer());
    const pgbouncer = await startPgbouncer(database.url, {});
    try {
      const start = () => openBehind(pgbouncer, { preparedStatements: false, syncOnStartup: true });
      const services = await Promise.all([start(), start(), start()]);
      const held = `select count(*)::integer as held from pg_locks where locktype = 'advisory'
        and database = (select oid from pg_database where datname = current_database())`;
      const { rows } = await execute(database.url, held);
      for (const service of services) await service.close();
      assert.deepEqual(rows, [{ held: 0 }]);
    } finally {
      await pgbouncer.stop();
      await database.drop();
    }
  });

  test('a time limit of requests on a connection of the server is none for migrations', () =>
    withFreshDatabase('postgresql', async ({ config: { connection = '' } }) => {
      const pgbouncer = await startPgbouncer(connection, { default_pool_size: 4 });
      const other = new pg.Client({ connectionString: connection });
      try {
        await other.connect();
        const limit = { preparedStatements: false, statementTimeout: 1 };
        const service = await openBehind(pgbouncer, limit);
        // All connections of the server get the limit.
        await Promise.all(Array.from({ length: 20 }, () => requestsTo(service)('GET', '/resource_providers')));
        await other.query('begin');
        await other.query('lock table kysely_migration in access exclusive mode');
        const opening = openBehind(pgbouncer, { ...limit, syncOnStartup: true });
        opening.catch(() => {});
        await untilWaitingFor(other, 1_500);
        await other.query('commit');
        await (await opening).close();
        await service.close();
      } finally {
        await other.end();
        await pgbouncer.stop();
      }
    }));

  test('a process that starts before PgBouncer has reached the database tries again, and then serves', async () => {
    const database = await createDatabase(await postgresqlServer());
    const url = new URL(database.url);
    const serverPort = Number(url.port);
    const address = await openSwitch(1);
    url.port = String(address.port);
    const pgbouncer = await startPgbouncer(url.href, { query_wait_timeout: 1 }, 'pooler');
    const attempts: string[] = [];
    const logger = pino({}, { write: (line: string) => attempts.push(line) });
    const retried = { preparedStatements: false, syncOnStartup: true, maxRetries: 60, retryInterval: 1 };
    try {
      const opening = openService(testConfig({ placementDatabase: { connection: pgbouncer.url, ...retried } }), {
        logger,
      });
      opening.catch(() => {});
      await until('an attempt has failed', () =>
        attempts.some((line) => /The next attempt, 1 of 60, is in 1 s/.test(line)),
      );
      assert.match(attempts.join(''), /cannot be reached: query_wait_timeout/);
      address.lead(serverPort);
      const service = await opening;
      assert.equal((await requestsTo(service)('GET', '/resource_providers')).status, 200);
      // The same while it serves: PgBouncer closes its connections, lets nothing in, and then reaches the database again.
      address.lead(1);
      const isRefused = async () => (await requestsTo(service)('GET', '/resource_providers')).status === 503;
      await until('requests are refused', isRefused);
      address.lead(serverPort);
      await until('requests are served', async () => !(await isRefused()));
      await service.close();
    } finally {
      await pgbouncer.stop();
      address.close();
      await database.drop();
    }
  });

  test('a start with a wrong password or database, which PgBouncer refuses for good, ends at once', () =>
    withFreshDatabase('postgresql', async ({ config: { connection = '' } }) => {
      const pgbouncer = await startPgbouncer(connection, {});
      try {
        for (const [url, reason] of [
          [pgbouncer.url.replace(':secret@', ':wrong@'), 'authentication failed'],
          [pgbouncer.url.replace('/placement', '/another'), 'no such database: another'],
        ] as const) {
          const startedMs = performance.now();
          const placementDatabase = { connection: url, maxRetries: 10, retryInterval: 60 };
          await assert.rejects(openService(testConfig({ placementDatabase })), new RegExp(reason));
          assert.ok(performance.now() - startedMs < 50_000, reason);
        }
      } finally {
        await pgbouncer.stop();
      }
    }));
});
