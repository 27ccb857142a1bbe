import assert from 'node:assert/strict';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { sql } from 'kysely';
import { migrationNames } from '../../db/schema/executed_migrations.ts';
import { engines } from '../support/engines.ts';
import { until } from '../support/until.ts';
import { type CommandName, runAlone, runToEnd, startCommand, withCommands } from './commands.ts';

for (const engine of engines) {
  test(`db sync, version and stamp on an empty ${engine} database`, async () => {
    await withCommands(engine, 'empty', async ({ config, configFile, folder, run }) => {
      // Each command once in a process of its own.
      const alone = (command: CommandName, ...args: readonly string[]) =>
        runAlone(command, ['--config-file', configFile, ...args], folder);
      const where =
        config.connection === undefined
          ? `embedded database in ${config.embeddedPath}`
          : `PostgreSQL database ${path.basename(config.connection)} at ${new URL(config.connection).host}`;
      const notice = engine === 'embedded' ? `The ${where} is new and empty: there was none.\n` : '';
      assert.deepEqual(await alone('placement-manage', 'db', 'version'), { code: 0, stdout: 'None\n', stderr: notice });
      const newest = migrationNames.at(-1);
      const line = (did: string) => `The ${where} is at ${newest}, revision a082b8bb98d0: ${did}.\n`;
      const applied = line(`applied ${migrationNames.join(', ')}`);
      assert.deepEqual(await alone('placement-manage', 'db', 'sync'), { code: 0, stdout: '', stderr: applied });
      assert.equal((await run('placement-manage', 'db', 'version')).stdout, 'a082b8bb98d0\n');
      const nothing = line('nothing had to be migrated');
      assert.deepEqual(await run('placement-manage', 'db', 'sync'), { code: 0, stdout: '', stderr: nothing });

      assert.deepEqual(await alone('placement-manage', 'db', 'stamp', '611cd6dffd7b'), {
        code: 0,
        stdout: '',
        stderr: `The ${where} is recorded at 611cd6dffd7b; nothing else was changed.\n`,
      });
      assert.equal((await run('placement-manage', 'db', 'version')).stdout, '611cd6dffd7b\n');
      const unknown = await run('placement-manage', 'db', 'stamp', 'feedbeef0000');
      assert.equal(unknown.code, 1);
      assert.match(unknown.stderr, /^placement-manage: There is no revision "feedbeef0000".*a082b8bb98d0.*\n$/);
      assert.equal((await run('placement-manage', 'db', 'version')).stdout, '611cd6dffd7b\n', 'nothing was changed');
      assert.equal((await run('placement-manage', 'db', 'stamp', 'head')).code, 0);
      assert.equal((await run('placement-manage', 'db', 'version')).stdout, 'a082b8bb98d0\n');
    });
  });
}

test('help and wrong usage', async () => {
  const usage: readonly (readonly [string, number, RegExp])[] = [
    ['placement-manage', 1, /Usage: placement-manage .*online-data-migrations/s],
    ['placement-manage db', 0, /Usage: placement-manage db .*sync.*version.*stamp.*online_data_migrations/s],
    ['placement-manage --help', 0, /--config-file/],
    ['placement-manage help', 0, /--config-file/],
    ['placement-manage no-such', 2, /unknown command 'no-such'/],
    ['placement-manage db stamp', 2, /missing required argument 'version'/],
    ['placement-manage db sync b5c396305c25', 2, /too many arguments for 'sync'/],
    ['placement-manage db online_data_migrations 50', 2, /too many arguments for 'online_data_migrations'/],
    ['placement-manage token list ada', 2, /too many arguments for 'list'/],
    ['placement-manage policy check placement:usages --roles a --roles b', 2, /'--roles <names>' is given twice/],
    ['placement-api --port 0 --port=1', 2, /'--port <number>' is given twice\. Give it once/],
    ['placement-status', 2, /Usage: placement-status/],
    ['placement-status upgrade', 2, /Usage: placement-status upgrade .*check/s],
    ['placement-api --no-such', 2, /unknown option '--no-such'/],
  ];
  for (const [line, code, text] of usage) {
    const [command, ...args] = line.split(' ');
    assert.ok(command === 'placement-manage' || command === 'placement-status' || command === 'placement-api');
    const ended = await runToEnd(command, args, '/');
    assert.equal(ended.code, code, line);
    assert.match(ended.stdout + ended.stderr, text);
  }
});

test('a configuration that names no database, or none at all, is refused, and no embedded one is made', () =>
  withCommands('embedded', 'empty', async ({ folder }) => {
    const file = path.join(folder, 'unnamed.conf');
    await writeFile(file, '[keystone_authtoken]\nauth_url = http://keystone.example.com:5000\n');
    const before = await readdir(folder);
    const commands = [
      ['placement-manage', ['db', 'sync'], 78],
      ['placement-manage', ['db', 'version'], 78],
      ['placement-manage', ['token', 'list'], 78],
      ['placement-status', ['upgrade', 'check'], 255],
    ] as const;
    for (const [command, args, code] of commands) {
      const ended = await runToEnd(command, ['--config-file', file, ...args], folder);
      assert.deepEqual([ended.code, ended.stdout], [code, ''], ended.stderr);
      assert.match(
        ended.stderr,
        /^placement-\w+: \S+unnamed\.conf: neither \[placement_database\] connection nor embedded_path is set, .*\n$/,
      );
    }
    assert.deepEqual(await readdir(folder), before);
    const bare = path.join(folder, 'bare');
    await mkdir(bare);
    for (const [command, args, code] of commands) {
      const ended = await runToEnd(command, args, bare);
      assert.deepEqual([ended.code, ended.stdout], [code, ''], ended.stderr);
      assert.match(
        ended.stderr,
        /: No configuration names a database, and there is no embedded database in .*placement-data\. Name /,
      );
    }
    assert.deepEqual(await readdir(bare), []);
  }));

test('a command does not touch the embedded database of a running server', async () => {
  await withCommands('embedded', 'migrated', async ({ folder, configFile, run }) => {
    const server = startCommand('placement-api', ['--config-file', configFile], folder);
    await server.said(/listens on/);
    const refused = await run('placement-manage', 'db', 'version');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /^placement-manage: The embedded database in .* is in use by another process\..*\n$/);
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 0);
    assert.equal((await run('placement-manage', 'db', 'version')).code, 0);
  });
});

test('the error for a database that cannot be reached is one line without the password', async () => {
  const environment = {
    DATABASE_URL: 'postgresql://me:secret@127.0.0.1:1/none',
    OS_PLACEMENT_DATABASE__MAX_RETRIES: '0',
  };
  const cases = [
    ['placement-manage', ['db', 'sync'], 69],
    ['placement-status', ['upgrade', 'check'], 255],
  ] as const;
  for (const [command, args, code] of cases) {
    const ended = await runToEnd(command, args, '/', environment);
    assert.equal(ended.code, code);
    assert.match(
      ended.stderr,
      /^placement-\w+: The database postgresql:\/\/me:\*\*\*@.* cannot be reached: .*REFUSED.*\n$/,
    );
  }
});

test('the error for a database whose connection breaks while a command works names the database', () =>
  withCommands('postgresql', 'migrated', async ({ configFile, config: { connection = '' }, folder, withDatabase }) => {
    const command = ['--config-file', configFile, 'db', 'version'];
    const ended = await withDatabase(({ kysely }) =>
      kysely.transaction().execute(async (trx) => {
        await sql`lock table alembic_version`.execute(trx);
        const running = startCommand('placement-manage', command, folder);
        await until('the command is ended by an administrator', async () => {
          const { rows } = await sql`select pg_terminate_backend(pid) from pg_locks
            where relation = 'alembic_version'::regclass and not granted
            -- a copy of a database has the same numbers of tables
            and database = (select oid from pg_database where datname = current_database())`.execute(trx);
          return rows.length > 0;
        });
        return running.ended;
      }),
    );
    const database = `PostgreSQL database ${path.basename(connection)} at ${new URL(connection).host}`;
    const stderr =
      `placement-manage: The ${database} does not serve any more: terminating connection due to administrator command. ` +
      'Run the command again when it does: what was done before stays.\n';
    assert.deepEqual(ended, { code: 69, stdout: '', stderr });
  }));
