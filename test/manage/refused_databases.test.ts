import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrationNames } from '../../db/schema/executed_migrations.ts';
import { revisions } from '../../db/schema/revision.ts';
import { postgresqlServer } from '../support/engines.ts';
import { inOtherLanguage } from '../support/other_language.ts';
import { createDatabase, databaseUrl, execute } from '../support/postgresql.ts';
import { type CommandWorld, runToEnd, startCommand, withCommands } from './commands.ts';
import { upstreamSchemas } from './upstream_schema.ts';

/** A database as another OpenStack service makes it. */
const keystone = `
create table "user" (id varchar(64) primary key, extra text);
create table project (id varchar(64) primary key, name varchar(64) not null);
create table alembic_version (version_num varchar(32) not null constraint alembic_version_pkc primary key);
insert into alembic_version values ('29e87d24a316');`;

const newerUpstream = `${upstreamSchemas.a082b8bb98d0} update alembic_version set version_num = 'feedbeef0000';`;

const urlOf = ({ config }: CommandWorld): string => config.connection ?? '';

/** The names of the tables, and the content of alembic_version. */
async function stateOf(url: string): Promise<readonly unknown[]> {
  const { rows: tables } = await execute(
    url,
    "select tablename from pg_tables where schemaname = 'public' order by tablename",
  );
  const { rows: revision } = await execute(url, 'select version_num from alembic_version order by version_num');
  return [...tables, ...revision];
}

const foreign: Readonly<Record<string, readonly [schema: string, found: RegExp]>> = {
  "another service's": [keystone, /at revision 29e87d24a316,/],
  'with a second head': [`${keystone} insert into alembic_version values ('a082b8bb98d0');`, /29e87d24a316,/],
  "a newer upstream's": [newerUpstream, /at revision feedbeef0000,/],
};

for (const [whose, [schema, found]] of Object.entries(foreign)) {
  test(`a database ${whose} is refused by every command that would change it, and stays as it is`, async () => {
    await withCommands('postgresql', 'empty', async (world) => {
      const url = urlOf(world);
      await execute(url, schema);
      const before = await stateOf(url);
      const syncOnStartup = { DATABASE_URL: url, OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP: 'true' };
      // On a busy machine a statement may be slow, and would be logged.
      const noSlowStatements = { OS_PLACEMENT_DATABASE__SLOW_STATEMENT_MS: '-1' };
      const ends = [
        await world.run('placement-manage', 'db', 'sync'),
        await world.run('placement-manage', 'db', 'stamp', 'head'),
        await runToEnd('placement-api', ['--port', '0'], world.folder, {
          ...syncOnStartup,
          ...noSlowStatements,
          OS_API__AUTH_STRATEGY: 'noauth2',
        }),
      ];
      for (const { code, stdout, stderr } of ends) {
        assert.deepEqual([code, stdout], [1, '']);
        const lines = stderr.trim().split('\n');
        assert.equal(lines.length, 1, stderr);
        assert.match(stderr, found);
        for (const revision of revisions) assert.ok(stderr.includes(revision), stderr);
        assert.match(stderr, /Nothing was changed\. Correct \[placement_database\] connection/);
      }
      assert.deepEqual(await stateOf(url), before);
    });
  });
}

/** What another program without alembic_version has made. */
const otherPrograms: Readonly<Record<string, readonly [schema: string, found: string]>> = {
  'with users and projects of its own': [
    'create table users (id serial primary key, login text); create table projects (id serial primary key, external_id text)',
    'The database has projects, users, but it is no complete database of OpenStack Placement: it lacks traits.created_at, ',
  ],
  'with a table that a migration makes': [
    `${upstreamSchemas['422ece571366']} create table services (id serial primary key)`,
    'The database has tables of another program that this one makes itself: services.',
  ],
  "of Nova's API": [
    `${upstreamSchemas.b4ed3a175331} drop table alembic_version; create table cell_mappings (id serial primary key)`,
    "The database is that of Nova's API: it has the table cell_mappings.",
  ],
};

for (const [whose, [schema, found]] of Object.entries(otherPrograms)) {
  test(`a database ${whose} is refused by its tables, and stays as it is`, async () => {
    await withCommands('postgresql', 'empty', async (world) => {
      const tables = 'select tablename from pg_tables where schemaname = current_schema() order by tablename';
      await execute(urlOf(world), schema);
      const before = await execute(urlOf(world), tables);
      for (const command of [
        ['db', 'sync'],
        ['db', 'stamp', 'head'],
      ]) {
        const { code, stderr } = await world.run('placement-manage', ...command);
        assert.equal(code, 1);
        assert.ok(stderr.startsWith(`placement-manage: ${found}`), stderr);
        assert.match(
          stderr,
          / Nothing was changed\. Correct \[placement_database\] connection, or create an empty database .*\n$/,
        );
      }
      assert.deepEqual((await execute(urlOf(world), tables)).rows, before.rows);
    });
  });
}

test('a database that is not in UTF-8 is refused by db sync, and stays as it is', async () => {
  const server = await postgresqlServer();
  const name = 'placement_in_latin1';
  await execute(server, `create database ${name} template template0 encoding 'LATIN1' locale 'C'`);
  const url = databaseUrl(server, name);
  try {
    await execute(url, upstreamSchemas.a082b8bb98d0 ?? '');
    const before = await stateOf(url);
    const { code, stderr } = await runToEnd('placement-manage', ['db', 'sync'], '/', { DATABASE_URL: url });
    assert.equal(code, 1);
    const statement = /the encoding LATIN1, .* Make another one \((create database .*;)\)/.exec(stderr)?.[1];
    assert.match(statement ?? stderr, /owner postgres encoding 'UTF8' lc_collate 'C' lc_ctype 'C'/);
    assert.deepEqual(await stateOf(url), before);
    await execute(server, statement ?? stderr);
    await execute(server, 'drop database placement_utf8');
  } finally {
    await execute(server, `drop database ${name}`);
  }
});

test("a database with other column types than upstream's is refused, and accepted once they are changed", async () => {
  await withCommands('postgresql', 'empty', async (world) => {
    const { run } = world;
    const moved = (upstreamSchemas.a082b8bb98d0 ?? '')
      .replaceAll(/\binteger\b/g, 'bigint')
      .replaceAll(/\bserial\b/g, 'bigserial')
      .replaceAll('without time zone', 'with time zone')
      .replaceAll('uuid varchar(36)', 'uuid uuid')
      .replaceAll('allocation_ratio float', 'allocation_ratio real');
    await execute(urlOf(world), moved);
    await execute(
      urlOf(world),
      `insert into projects (external_id, created_at) values ('moved', '2026-01-02 03:04:05+00');
      insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
        allocation_ratio) values (1, 0, 8, 0, 1, 8, 1, 1.1)`,
    );
    const before = await stateOf(urlOf(world));
    const { code, stderr } = await run('placement-manage', 'db', 'sync');
    assert.equal(code, 1);
    assert.match(stderr, /allocation_ratio type double precision using allocation_ratio::text::double precision;/);
    assert.match(stderr, /columns of other types than those of OpenStack Placement.* Nothing was changed\./);
    assert.deepEqual(await stateOf(urlOf(world)), before);

    const statements = stderr.slice(stderr.indexOf('alter table'));
    await execute(urlOf(world), `set timezone = 'Asia/Tokyo'; ${statements}`);
    const sync = await run('placement-manage', 'db', 'sync');
    assert.equal(sync.code, 0, sync.stderr);
    const { rows } = await execute(
      urlOf(world),
      "select created_at::text as time, pg_typeof(id)::text as type from projects where external_id = 'moved'",
    );
    assert.deepEqual(rows, [{ time: '2026-01-02 03:04:05', type: 'integer' }]);
    const { rows: ratios } = await execute(urlOf(world), 'select allocation_ratio as ratio from inventories');
    assert.deepEqual(ratios, [{ ratio: 1.1 }]);
    assert.equal((await run('placement-manage', 'online-data-migrations')).code, 0);
  });
});

test('a migration of a newer release is reported as such, by db sync and by a start that migrates', async () => {
  await withCommands('postgresql', 'migrated', async (world) => {
    const url = urlOf(world);
    await execute(url, "insert into kysely_migration values ('999_future', '2030-01-01')");
    const newer = /The database is of a newer release of this service, .* 999_future\. Use that release, or .*backup/;
    const sync = await world.run('placement-manage', 'db', 'sync');
    assert.equal(sync.code, 1);
    assert.match(sync.stderr, newer);
    const api = await runToEnd('placement-api', ['--config-file', world.configFile], world.folder, {
      OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP: 'true',
    });
    assert.equal(api.code, 1);
    assert.match(api.stderr, newer);
  });
});

test("db sync corrects a revision that a stamp made too old, and keeps upstream's and unknown ones", async () => {
  await withCommands('postgresql', 'migrated', async ({ run, ...world }) => {
    const version = async () => (await run('placement-manage', 'db', 'version')).stdout;
    assert.equal((await run('placement-manage', 'db', 'stamp', '422ece571366')).code, 0);
    assert.equal((await run('placement-manage', 'db', 'sync')).code, 0);
    assert.equal(await version(), '422ece571366\n');
    for (const stamp of ['b4ed3a175331', 'base']) {
      await run('placement-manage', 'db', 'stamp', stamp);
      assert.notEqual(await version(), 'a082b8bb98d0\n');
      assert.equal((await run('placement-manage', 'db', 'sync')).code, 0);
      assert.equal(await version(), 'a082b8bb98d0\n');
    }
    // A newer upstream uses the same database and migrated it after this service had adopted it.
    await execute(world.config.connection ?? '', "update alembic_version set version_num = 'feedbeef0000'");
    assert.equal((await run('placement-manage', 'db', 'sync')).code, 0);
    assert.equal(await version(), 'feedbeef0000\n');
  });
});

/** Calls back with the URL of a new database, for a new role that owns nothing. */
async function withRole(
  use: (urls: { readonly role: string; readonly admin: string; readonly as: string }) => Promise<void>,
) {
  const { url, drop } = await createDatabase(await postgresqlServer());
  const role = `role_${new URL(url).pathname.slice(-12)}`;
  await execute(url, `create role ${role} login`);
  try {
    const as = new URL(url);
    as.username = role;
    await use({ role, admin: url, as: as.href });
  } finally {
    await drop();
    await execute(await postgresqlServer(), `drop role ${role}`);
  }
}

// In a database from before PostgreSQL 15, also after an upgrade, schema public is of a superuser.
for (const owner of ['pg_database_owner', 'postgres']) {
  test(`the error for a role that may not create tables has the statement that permits it, in a schema of ${owner}`, async () => {
    await withRole(async ({ role, admin, as }) => {
      await execute(admin, `alter schema public owner to ${owner}; revoke create on schema public from public`);
      const sync = () => runToEnd('placement-manage', ['db', 'sync'], '/', { DATABASE_URL: as });
      const refused = await sync();
      assert.equal(refused.code, 77);
      const [, statement] =
        /permission denied for schema public\. .*as a superuser: ((?:alter database|grant create) .*;)\n$/.exec(
          refused.stderr,
        ) ?? [refused.stderr];
      assert.match(refused.stderr, new RegExp(`^placement-manage: Role ${role} may not change the schema`));
      const translated = await inOtherLanguage(as);
      const { stderr: inOther } = await runToEnd('placement-manage', ['db', 'sync'], '/', {
        DATABASE_URL: translated.url,
      });
      translated.stop();
      assert.equal(
        inOther,
        refused.stderr.replace('permission denied for schema public', 'xxxxxxxxxx xxxxxx xxx xxxxxx xxxxxx'),
      );
      await execute(admin, statement ?? refused.stderr);
      const { code, stderr } = await sync();
      assert.equal(code, 0, stderr);
      assert.match(stderr, new RegExp(`applied ${migrationNames.join(', ')}\\.\n$`));
    });
  });
}

test("the error for a role that does not own upstream's tables says to use the owner", async () => {
  await withRole(async ({ role, admin, as }) => {
    await execute(admin, upstreamSchemas.a082b8bb98d0 ?? '');
    const sync = () => runToEnd('placement-manage', ['db', 'sync'], '/', { DATABASE_URL: as });
    const remedy = 'Set [placement_database] connection to the role that owns the tables.\n';
    const unread = await sync();
    assert.equal(unread.code, 77);
    assert.ok(unread.stderr.endsWith(`: permission denied for table alembic_version. ${remedy}`), unread.stderr);
    await execute(admin, `grant all on schema public to ${role}; grant all on all tables in schema public to ${role}`);
    const unchanged = await sync();
    assert.equal(unchanged.code, 77);
    assert.match(unchanged.stderr, /: must be owner of table \w+\. /);
    assert.ok(unchanged.stderr.endsWith(remedy), unchanged.stderr);
  });
});

test('the error for a role that owns the tables, but not the functions, says to use the owner', async () => {
  await withRole(async ({ role, admin, as }) => {
    const sync = (url: string) => runToEnd('placement-manage', ['db', 'sync'], '/', { DATABASE_URL: url });
    assert.equal((await sync(admin)).code, 0);
    await execute(
      admin,
      `do $$ declare each record; begin
        for each in select oid::regclass as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace loop
          execute format('alter table %s owner to ${role}', each.name);
        end loop;
        execute format('alter database %I owner to ${role}', current_database());
      end $$;
      alter function etag_parts reset jit;
      delete from kysely_migration where name >= '017_no_compilation'`,
    );
    const { code, stderr } = await sync(as);
    assert.equal(code, 77);
    const remedy = 'Set [placement_database] connection to the role that owns the functions.\n';
    assert.ok(stderr.endsWith(`: must be owner of function etag_parts. ${remedy}`), stderr);
    assert.equal((await sync(admin)).code, 0);
  });
});

test('the error for a role without privileges on the tables has the statements that grant them', async () => {
  await withCommands('postgresql', 'migrated', async ({ config, folder }) => {
    const owner = config.connection ?? '';
    const as = new URL(owner);
    const role = `reader_${as.pathname.slice(-12)}`;
    as.username = role;
    await execute(owner, `create role ${role} login`);
    try {
      const env = { OS_PLACEMENT_DATABASE__CONNECTION: as.href, OS_API__WORKERS: '2' };
      const statements: string[] = [];
      for (const [command, ...args] of [
        ['placement-api', '--port', '0'],
        ['placement-manage', 'online-data-migrations'],
      ] as const) {
        const { code, stderr } = await runToEnd(command, args, folder, env);
        assert.equal(code, 77, stderr);
        const name = as.pathname.slice(1);
        const [, statement = ''] =
          /^placement-\w+: Role \w+ may not use the tables of database \w+: permission denied for table kysely_migration\. .*, as that role: (.*)\n$/m.exec(
            stderr,
          ) ?? [];
        assert.ok(stderr.includes(`Role ${role} may not use the tables of database ${name}`), stderr);
        statements.push(statement);
      }
      await execute(owner, statements[0] ?? '');
      const server = startCommand('placement-api', ['--port', '0', '--workers', '1'], folder, env);
      await server.said(/listens on/);
      server.child.kill('SIGTERM');
      assert.equal((await server.ended).code, 0);
    } finally {
      await execute(owner, `drop owned by ${role}; drop role ${role}`);
    }
  });
});

test('a database that is read-only is refused with the remedy', async () => {
  await withCommands('postgresql', 'empty', async (world) => {
    const { pathname } = new URL(urlOf(world));
    await execute(urlOf(world), `alter database ${pathname.slice(1)} set default_transaction_read_only = on`);
    for (const command of ['sync', 'stamp'] as const) {
      const { code, stderr } = await world.run(
        'placement-manage',
        'db',
        command,
        ...(command === 'stamp' ? ['head'] : []),
      );
      assert.equal(code, 69);
      assert.match(
        stderr,
        /^placement-manage: The database is read-only: it is a standby, or default_transaction_read_only .*switch it off\.\n$/,
      );
    }
  });
});

test('the error for a refused login, a missing database or a missing privilege has the remedy, which helps', async () => {
  const server = await postgresqlServer();
  const { url, drop } = await createDatabase(server);
  const role = `guest_${new URL(url).pathname.slice(-12)}`;
  const missing = `missing-${role}`;
  const run = (to: { readonly username?: string; readonly pathname?: string }) => {
    const changed = Object.assign(new URL(url), to).href;
    return runToEnd('placement-manage', ['db', 'version'], '/', { DATABASE_URL: changed });
  };
  const remedyOf = (stderr: string): string => /, as a superuser: (.*;)\n$/.exec(stderr)?.[1] ?? assert.fail(stderr);
  try {
    const unknownRole = await run({ username: role });
    assert.equal(unknownRole.code, 77);
    assert.match(unknownRole.stderr, /role "\w+" does not exist\. The server answers: correct user and password in/);

    await execute(
      server,
      `create role ${role} login; revoke connect on database ${new URL(url).pathname.slice(1)} from public`,
    );
    const keptOut = await run({ username: role });
    assert.equal(keptOut.code, 77);
    assert.match(
      keptOut.stderr,
      /permission denied for database "\w+"\. The server answers: correct .*, or let the role connect/,
    );
    await execute(server, remedyOf(keptOut.stderr));
    assert.equal((await run({ username: role })).code, 0);

    const unknownDatabase = await run({ username: role, pathname: missing });
    assert.equal(unknownDatabase.code, 78);
    assert.match(
      unknownDatabase.stderr,
      /"missing-\w+" does not exist\. The server answers: correct .*, or create the database/,
    );
    await execute(server, remedyOf(unknownDatabase.stderr));
    assert.equal((await run({ username: role, pathname: missing })).code, 0);
  } finally {
    await drop();
    await execute(server, `drop database if exists "${missing}"`);
    await execute(server, `drop role if exists ${role}`);
  }
});
