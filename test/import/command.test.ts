/** What `placement-manage import` says and does; import.test.ts is about the copy that it makes. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, suite, test } from 'node:test';
import { openDatabase } from '../../db/engine/connect.ts';
import { beginImport, endImport } from '../../db/schema/unfinished_import.ts';
import { type Ended, runToEnd } from '../manage/commands.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { freePort } from '../support/free_port.ts';
import { inFolder } from '../support/in_folder.ts';
import { execute } from '../support/postgresql.ts';
import { at, requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';
import { fillEmbedded } from '../support/templates.ts';
import { type SourceServer, sourceServers } from './source_server.ts';

/** Runs `placement-manage import` in a separate folder, on an embedded database there. */
async function runImport(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  files: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  return inFolder(async (folder) => {
    for (const [name, text] of Object.entries(files)) await writeFile(path.join(folder, name), text);
    return await runToEnd('placement-manage', ['import', ...args], folder, environment);
  });
}

suite('placement-manage import without a source', () => {
  const wrong: readonly (readonly [args: readonly string[], says: RegExp])[] = [
    [[], /^error: give either --from or --from-config$/m],
    [['--from', 'mysql://u:secret@h/d', '--from-config', 'x'], /^error: give either --from or --from-config$/m],
    [['--from', 'postgresql://u:secret@h/d'], /^error: --from must be a URL of the form mysql:\/\/user/m],
    [['--from-config', 'placement.conf'], /^error: placement.conf has no \[placement_database\] connection$/m],
    [['--from-config', 'sqlite.conf'], /^error: sqlite.conf: \[placement_database\] connection must be a URL/m],
  ];
  const files = { 'placement.conf': '[api]\n', 'sqlite.conf': '[placement_database]\nconnection = sqlite:///secret\n' };
  for (const [args, says] of wrong) {
    test(args.join(' ') || 'no arguments', async () => {
      const { code, stdout, stderr } = await runImport(args, {}, files);
      assert.equal(code, 2);
      assert.match(stderr, says);
      assert.doesNotMatch(stdout + stderr, /secret/);
    });
  }

  test('a file that does not exist', async () => {
    const { code, stderr } = await runImport(['--from-config', 'nowhere.conf']);
    assert.equal(code, 1);
    assert.match(stderr, /^placement-manage: nowhere.conf cannot be read: ENOENT/);
  });

  test('a certificate file that does not exist', async () => {
    const { code, stderr } = await runImport(['--from', 'mysql://u:secret@localhost/d?ssl_ca=/nowhere/ca.pem']);
    assert.equal(code, 1);
    assert.equal(
      stderr,
      "placement-manage: The source mysql://localhost:3306/d cannot be reached: ENOENT: no such file or directory, open '/nowhere/ca.pem'. Correct the ssl_ parameters at the end of the URL.\n",
    );
  });

  test('the parameters of a file count as those of its URL', async () => {
    const config =
      '[placement_database]\nconnection = mysql://u:secret@localhost/d\nconnection_parameters = ssl_ca=/nowhere/ca.pem\n';
    const { stderr } = await runImport(['--from-config', 'upstream.conf'], {}, { 'upstream.conf': config });
    assert.match(stderr, /open '\/nowhere\/ca\.pem'\. Correct the ssl_ parameters/);
  });

  test('a source that does not answer; the error does not show its password', async () => {
    const source = `127.0.0.1:${await freePort()}/placement`;
    const config = `[placement_database]\nconnection = mysql+pymysql://placement:very%40secret@${source}?charset=utf8\n`;
    for (const { code, stdout, stderr } of [
      await runImport(['--from', `mysql://placement:very%40secret@${source}`]),
      await runImport(['--from', `mysql://placement@${source}`], { MYSQL_PWD: 'very@secret' }),
      await runImport(['--from-config', 'upstream.conf'], {}, { 'upstream.conf': config }),
    ]) {
      assert.equal(code, 69);
      assert.equal(
        stderr.replace(/: connect ECONNREFUSED [\d.:]+\./, ': REASON.'),
        `placement-manage: The source mysql://${source} cannot be reached: REASON. Start the server, or correct the URL.\n`,
      );
      assert.doesNotMatch(stdout + stderr, /secret/);
    }
  });
});

test('no service starts on an unfinished import', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-import-'));
  const settings = { embeddedPath: path.join(folder, 'data') };
  const change = async (use: typeof endImport): Promise<void> => {
    const database = await openDatabase(settings);
    await use(database);
    await database.close();
  };
  const open = () => openServiceOn({ settings, config: { connection: undefined, ...settings }, drop: async () => {} });
  try {
    await fillEmbedded(settings.embeddedPath);
    await change((database) => beginImport(database, 'mysql://db.example.com:3306/placement'));
    await assert.rejects(
      open(),
      /^Error: The database holds an unfinished import\. Run the same "placement-manage import" again/,
    );
    await change(endImport);
    await (await open()).close();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

for (const { name, start } of sourceServers('command')) {
  suite(`placement-manage import from ${name}`, () => {
    let server: SourceServer;
    before(async () => {
      server = await start();
    });
    after(() => server?.stop());

    test('the command says what to do if its role does not own the tables, or the connection breaks', async () => {
      await withFreshDatabase('postgresql', async ({ config: { connection = '' } }) => {
        const { url } = await server.createCloud();
        const importAs = (target: string) =>
          runToEnd('placement-manage', ['import', '--from', url], '/', { DATABASE_URL: target });
        const as = new URL(connection);
        as.username = `writer_${as.pathname.slice(-12)}`;
        await execute(connection, `create role ${as.username} login`);
        await execute(
          connection,
          `grant select, insert, update, delete on all tables in schema public to ${as.username}`,
        );
        const refused = await importAs(as.href);
        assert.equal(refused.code, 77);
        assert.match(
          refused.stderr,
          /: permission denied for table \w+\. Set .* to the role that owns the tables\.\n$/,
        );
        await execute(connection, `drop owned by ${as.username}; drop role ${as.username}`);

        await execute(
          connection,
          `create function break_connection() returns trigger language plpgsql as $$ begin
            perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
          create trigger break_connection after insert on inventory_changes for each statement execute function break_connection()`,
        );
        const broken = await importAs(connection);
        assert.equal(broken.code, 69);
        assert.match(
          broken.stderr,
          /^placement-manage: The target database does not serve any more: .* Run the same "placement-manage import" again: it continues where it stopped/,
        );
        await execute(connection, 'drop function break_connection cascade');
        assert.equal((await importAs(connection)).code, 0);
      });
    });

    test('the command imports into the embedded database, and a service serves the copy', async () => {
      await inFolder(async (folder) => {
        const { url } = await server.createCloud();
        const ended = await runToEnd('placement-manage', ['import', '--from', url], folder);
        assert.deepEqual([ended.code, ended.stderr], [0, '']);
        assert.match(ended.stdout, /^allocations: 5 rows$/m);
        assert.match(ended.stdout, /^Imported 31 rows in /m);
        const settings = { embeddedPath: path.join(folder, 'placement-data') };
        const service = await openServiceOn({
          settings,
          config: { connection: undefined, ...settings },
          drop: async () => {},
        });
        try {
          const send = requestsTo(service);
          const child = '/resource_providers/10000000-0000-4000-8000-000000000001';
          assert.deepEqual(at((await send('GET', `${child}/usages`)).json, 'usages'), { VCPU: 6, MEMORY_MB: 1024 });
          const { json } = await send(
            'GET',
            '/allocation_candidates?resources=VCPU:8,CUSTOM_LICENSE:1&required=HW_CPU_X86_AVX2',
          );
          assert.equal(Object(at(json, 'allocation_requests')).length, 1);
        } finally {
          await service.close();
        }
      });
    });
  });
}
