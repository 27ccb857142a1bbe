/** A PostgreSQL that runs, but refuses the login of the service or the use of its tables. An administrator may change that at any time. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Writable } from 'node:stream';
import { after, before, suite, test } from 'node:test';
import { pino } from 'pino';
import { openService } from '../../src/start/service.ts';
import { claim, makeHost } from '../races/claimants.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { createDatabase, execute, type PostgresqlServer, startPostgresql } from '../support/postgresql.ts';
import { accepted, requestsTo } from '../support/requests.ts';
import { openServiceOn, testConfig } from '../support/services.ts';
import { until } from '../support/until.ts';

type Names = { readonly role: string; readonly database: string };
type Change = {
  readonly made: (names: Names) => string;
  readonly undone: (names: Names) => string;
  /**
   * Where the statements run. `server`: on the maintenance database, and the sessions of the service are ended for them. `database`: on the
   * database of the service. `sessions`: as `server`; they set defaults of new sessions, and undoing them ends no session.
   */
  readonly on: 'server' | 'database' | 'sessions';
  readonly reason: RegExp;
  readonly ready: string;
  readonly line: string;
};

const accessRefused = {
  ready: 'The database refuses the login of the service: its password, role or database was changed',
  line: 'The database refuses the login of the service',
};
const otherSchema = {
  ready: 'Tables of the database are gone, or of another release',
  line: 'Tables of the database are gone, or of another release',
};
const notPermitted = {
  ready: 'The role of the service lacks a privilege in the database',
  line: 'The role of the service lacks a privilege',
};

const changes: Readonly<Record<string, Change>> = {
  'a role that may not log in any more': {
    made: ({ role }) => `alter role ${role} nologin`,
    undone: ({ role }) => `alter role ${role} login`,
    on: 'server',
    reason: /is not permitted to log in/,
    ...accessRefused,
  },
  'a database that takes no connections': {
    made: ({ database }) => `alter database ${database} allow_connections false`,
    undone: ({ database }) => `alter database ${database} allow_connections true`,
    on: 'server',
    reason: /not currently accepting connections/,
    ...accessRefused,
  },
  'a database with another name': {
    made: ({ database }) => `alter database ${database} rename to elsewhere`,
    undone: ({ database }) => `alter database elsewhere rename to ${database}`,
    on: 'server',
    reason: /does not exist/,
    ...accessRefused,
  },
  'a library for its sessions that is not there': {
    made: ({ role }) => `alter role ${role} set session_preload_libraries = ''`, // a list of one empty name
    undone: ({ role }) => `alter role ${role} reset session_preload_libraries`,
    on: 'server',
    reason: /could not access file/,
    ready: 'The database has no disk or memory left, or cannot use its files',
    line: 'The database has no disk or memory left, or cannot use its files',
  },
  'tables of another role': {
    made: ({ role }) => `revoke all on all tables in schema public from ${role}`,
    undone: ({ role }) => `grant all on all tables in schema public to ${role}`,
    on: 'database',
    reason: /permission denied for table/,
    ...notPermitted,
  },
  'tables whose rows are hidden from the role': {
    made: () => 'alter table allocations enable row level security, force row level security',
    undone: () => 'alter table allocations disable row level security, no force row level security',
    on: 'database',
    reason: /affected by row-level security policy/,
    ...notPermitted,
  },
  'tables in another schema': {
    made: () => 'alter schema public rename to elsewhere; create schema public',
    undone: () => 'drop schema public; alter schema elsewhere rename to public',
    on: 'database',
    reason: /relation \S+ does not exist/,
    ...otherSchema,
  },
  'sessions whose search_path leads elsewhere': {
    made: ({ role }) => `alter role ${role} set search_path = elsewhere`,
    undone: ({ role }) => `alter role ${role} reset search_path`,
    on: 'sessions',
    reason: /relation \S+ does not exist/,
    ...otherSchema,
  },
  'sessions that begin as another role': {
    made: ({ role }) => `create role ${role}_other role ${role}; alter role ${role} set role = ${role}_other`,
    undone: ({ role }) => `alter role ${role} reset role`,
    on: 'sessions',
    reason: /permission denied for table/,
    ...notPermitted,
  },
  'tables without a column': {
    made: () => 'alter table resource_providers rename generation to elsewhere',
    undone: () => 'alter table resource_providers rename elsewhere to generation',
    on: 'database',
    reason: /column \S+ does not exist/,
    ...otherSchema,
  },
};

suite('a database that refuses the login of the service', () => {
  let server: PostgresqlServer;
  before(async () => {
    server = await startPostgresql();
  });
  after(() => server?.stop());

  for (const [what, { made, undone, on, reason, ready, line }] of Object.entries(changes)) {
    test(`answers are 503 and the log says why, once: ${what}`, async () => {
      const lines: string[] = [];
      const log = new Writable({ write: (chunk, _, done) => done(void lines.push(String(chunk))) });
      const { url } = await createDatabase(server.url);
      const database = new URL(url).pathname.slice(1);
      const role = `role_${randomUUID().replaceAll('-', '')}`;
      await execute(server.url, `create role ${role} login`);
      await execute(server.url, `alter database ${database} owner to ${role}`);
      const asRole = new URL(url);
      asRole.username = role;
      const defaults = { ...testConfig().placementDatabase, connection: asRole.href, syncOnStartup: true };
      const placementDatabase = on === 'sessions' ? { ...defaults, maxPoolSize: 1 } : defaults;
      const service = await openService(testConfig({ placementDatabase }), { logger: pino(log) });
      const change = async (statement: string): Promise<void> => {
        const end = `select pg_terminate_backend(pid) from pg_stat_activity where usename = '${role}'`;
        if (on === 'server') await execute(server.url, end);
        const target = on === 'database' ? url : server.url;
        // The service may have connected again before the change of a name.
        await until('the change is made', () =>
          execute(target, statement).then(
            () => true,
            () => execute(server.url, end).then(() => false),
          ),
        );
        if (on === 'server' || (on === 'sessions' && statement !== undone({ role, database })))
          await execute(server.url, end);
      };
      try {
        const send = requestsTo(service);
        const host = await makeHost(send);
        await change(made({ role, database }));
        await until('it says why it is not ready', async () => (await send('GET', '/readyz')).text === ready);
        for (let turn = 0; turn < 3; turn += 1) {
          const answers = [await send('GET', `/resource_providers/${host}`), await claim(send, host, randomUUID())];
          for (const { status, headers } of answers) assert.deepEqual([status, headers.get('retry-after')], [503, '1']);
        }
        await change(undone({ role, database }));
        await until('it is ready', async () => (await send('GET', '/readyz')).status === 200);
        accepted(await claim(send, host, randomUUID()));
        const said = lines.filter((each) => each.includes(line));
        assert.equal(said.length, 1, lines.join(''));
        assert.match(said.join(), reason);
        assert.doesNotMatch(lines.join(''), /Unexpected error|"stack"/);
        if (line === accessRefused.line) assert.match(lines.join(''), /The database can be reached again/);
      } finally {
        await service.close();
      }
    });
  }
});

test('while connections are open, a login that is refused fails no request, and the log says so once', async () => {
  const server = await startPostgresql();
  const { url } = await createDatabase(server.url);
  const role = `role_${randomUUID().replaceAll('-', '')}`;
  await execute(server.url, `create role ${role} login`);
  await execute(server.url, `alter database ${new URL(url).pathname.slice(1)} owner to ${role}`);
  const lines: string[] = [];
  const log = new Writable({ write: (chunk, _, done) => done(void lines.push(String(chunk))) });
  const connection = url.replace('//postgres@', `//${role}@`);
  const placementDatabase = { ...testConfig().placementDatabase, connection, syncOnStartup: true };
  const service = await openService(testConfig({ placementDatabase }), { logger: pino(log) });
  try {
    const send = requestsTo(service);
    const host = await makeHost(send);
    await execute(server.url, `alter role ${role} nologin`);
    for (let round = 0; round < 5; round += 1) {
      const answers = await Promise.all(
        Array.from({ length: 30 }, async () => [
          await claim(send, host, randomUUID()),
          await send('GET', `/allocations/${randomUUID()}`),
          await send('GET', '/readyz'),
        ]),
      );
      for (const answer of answers.flat()) accepted(answer);
    }
    const said = lines.join('');
    assert.equal(said.split('The database refuses further connections of the service').length, 2, said);
    assert.match(said, /is not permitted to log in/);
    assert.doesNotMatch(said, /can be reached again|refuses the login/);
    const { open } = service.database.connections();
    await execute(server.url, `alter role ${role} login`);
    await until('further connections are opened', async () => {
      await Promise.all(Array.from({ length: 30 }, () => claim(send, host, randomUUID())));
      await Promise.all(Array.from({ length: 30 }, () => send('GET', `/allocations/${randomUUID()}`)));
      return service.database.connections().open > open;
    });
  } finally {
    await service.close();
    await server.stop();
  }
});

test('a service is not ready while any table is gone, also one that only claims or lists need', async () => {
  await withFreshDatabase('postgresql', async (database) => {
    const { connection = '' } = database.config;
    const { rows } = await execute(
      connection,
      `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
        and relname not in ('alembic_version', 'kysely_migration_lock')`,
    );
    assert.ok(rows.length > 30);
    const service = await openServiceOn(database);
    try {
      const ready = async () => (await requestsTo(service)('GET', '/readyz')).text;
      for (const { name } of rows) {
        await execute(connection, `alter table ${name} rename to elsewhere`);
        assert.equal(await ready(), otherSchema.ready, name);
        await execute(connection, `alter table elsewhere rename to ${name}`);
        await until('it is ready', async () => (await ready()) === 'OK');
      }
    } finally {
      await service.close();
    }
  });
});
