import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, writeFile } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { version } from '../../src/config/version.ts';
import { inFolder } from '../support/in_folder.ts';
import { fillEmbedded } from '../support/templates.ts';
import { killLeftovers, runToEnd, startCommand, withCommands } from './commands.ts';

/** Ends what was started in a folder before it removes it. */
const startedIn = (use: (folder: string) => Promise<void>): Promise<void> =>
  inFolder((folder) => use(folder).finally(killLeftovers));

const listens = /^placement-api \d\S* listens on (http:\/\/\S+)\n/m;

test('without any configuration the service prints its defaults, and listens on 127.0.0.1', async () => {
  await startedIn(async (folder) => {
    const server = startCommand('placement-api', ['--port', '0'], folder);
    const [, url = ''] = await server.said(listens);
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/);
    const answer = await fetch(`${url}/resource_providers`, { headers: { 'x-auth-token': 'admin' } });
    assert.equal(answer.status, 200);
    await answer.text();
    server.child.kill('SIGINT');
    const { code, stdout, stderr } = await server.ended;
    assert.equal(code, 0);
    assert.match(
      stdout,
      /^No configuration was found: embedded database in \.\/placement-data, no authentication \(noauth2\), 127\.0\.0\.1 only\.\n/,
    );
    const data = path.join(folder, 'placement-data');
    assert.match(
      stdout,
      new RegExp(
        `^The embedded database in ${data} is new and empty: there was none\\.\n` +
          `placement-api serves the embedded database in ${data}\nplacement-api ${version} listens on ${url}\n$`,
        'm',
      ),
    );
    const lines = stderr.trim().split('\n');
    const requests = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
    assert.equal(requests.length, 1, 'one line for each request');
    assert.equal(requests[0].url, '/resource_providers');
    assert.equal(requests[0].level, 'info');
  });
});

test('a mistake ends the start with one line, and its kind is the exit code', async () => {
  await startedIn(async (folder) => {
    const config = path.join(folder, 'placement.conf');
    const busy = net.createServer();
    await new Promise<void>((resolve) => busy.listen(0, '127.0.0.1', resolve));
    busy.unref();
    const { port } = busy.address() as net.AddressInfo; // a TCP server has one
    // On a busy machine a statement may be slow, and would be logged.
    const noauth = '[api]\nauth_strategy = noauth2\n[placement_database]\nmax_retries = 0\nslow_statement_ms = -1\n';
    const cases: readonly (readonly [text: string, args: readonly string[], RegExp, code?: number])[] = [
      ['', [], /auth_strategy = keystone.*Without Keystone set \[api\] auth_strategy = tokens.*noauth2/],
      ['[api]\nauth_strategy = none\n', [], /placement\.conf:2: \[api\] auth_strategy = "none":? must be one of/],
      [
        '[metrics]\nshapes = small: resources=VCPU:2; big: resources=VCPU:many\n',
        [],
        /placement\.conf:2: \[metrics\] shapes = "small: resources=VCPU:2; big: resources=VCPU:many": the shape "big": .*many/,
      ],
      ['[metrics]\nshapes_interval = -1\n', [], /placement\.conf:2: \[metrics\] shapes_interval = "-1":? must be/],
      [noauth, ['--port', 'http'], /--port: \[api\] port = "http":? must be/],
      [
        noauth,
        ['--port', String(port)],
        /Cannot listen on 127\.0\.0\.1:\d+: another program listens there\. .*--port \(with make: ARGS=/,
        71,
      ],
      [
        noauth,
        ['--host', 'no-such-host.invalid', '--port', '0'],
        /Cannot listen on no-such-host\.invalid:0: (no host has this name|the name cannot be looked up now)\. Choose/,
        71,
      ],
      [noauth, ['--host', '192.0.2.1', '--port', '0'], /Cannot listen on 192\.0\.2\.1:0: this machine has no such/, 71],
      [
        `${noauth}connection = postgresql://u:secret@127.0.0.1:1/d\n`,
        [],
        /The database .*u:\*\*\*@.* cannot be reached/,
        69,
      ],
      [`${noauth}connection = mysql+pymysql://u:p@h/d\n`, [], /MySQL and MariaDB are not supported/],
    ];
    for (const [text, args, message, exitCode = 78] of cases) {
      await writeFile(config, text);
      const { code, stdout, stderr } = await runToEnd('placement-api', ['--config-file', config, ...args], folder);
      assert.equal(code, exitCode);
      assert.equal(stdout, '');
      const lines = stderr.trim().split('\n');
      assert.match(lines.at(-1) ?? '', /^placement-api: /);
      assert.match(lines.at(-1) ?? '', message);
      const warnings = lines.slice(0, -1);
      assert.ok(warnings.every((line) => line.startsWith('Warning: ')) && warnings.length <= 2, stderr);
    }
    const missing = await runToEnd('placement-api', ['--config-file', path.join(folder, 'none.conf')], folder);
    assert.equal(missing.code, 78);
    assert.match(missing.stderr, /^placement-api: .*none\.conf: the configuration file cannot be read.*\n$/);
  });
});

test('make serve takes the flags of placement-api in ARGS', async () => {
  const checkout = path.join(import.meta.dirname, '..', '..');
  const environment = { PATH: process.env.PATH, HOME: os.tmpdir() };
  // make considers the installed packages up to date. It starts no service.
  const args = ['--old-file=node_modules', 'serve', 'ARGS=--port 8801 --show-config'];
  const { stdout } = await promisify(execFile)('make', args, { cwd: checkout, env: environment });
  assert.match(stdout, /# --port\nport = 8801\n/);
});

test('a configuration without a database gives a warning at the start, and commands that manage one refuse it', async () => {
  await startedIn(async (folder) => {
    const config = path.join(folder, 'placement.conf');
    await writeFile(
      config,
      '[api]\nauth_strategy = noauth2\n[oslo_policy]\npolicy_file = rules.yaml\n' +
        '[placement_database]\nmax_retris = 1\n',
    );
    const warnings =
      /^Warning: .*:6: \[placement_database\] max_retris .* Did you mean max_retries\?\nWarning: .*:4: \[oslo_policy\] policy_file .* no such file.*\nWarning: .*neither \[placement_database\] connection nor embedded_path is set, .* embedded database in \/\S+\/placement-data\. /;
    await fillEmbedded(path.join(folder, 'placement-data'));
    const server = startCommand('placement-api', ['--config-file', config, '--port', '0'], folder);
    await server.said(listens);
    server.child.kill('SIGTERM');
    assert.match((await server.ended).stderr, warnings);

    const refused =
      /max_retries\?\n(?:Warning: .*\n)?placement-\w+: .*neither \[placement_database\] connection nor embedded_path is set, .*\n$/;
    const sync = await runToEnd('placement-manage', ['--config-file', config, 'db', 'sync'], folder);
    assert.equal(sync.code, 78);
    assert.match(sync.stderr, refused);
    const check = await runToEnd('placement-status', ['--config-file', config, 'upgrade', 'check'], folder);
    assert.equal(check.code, 255);
    assert.match(check.stderr, refused);
  });
});

test('a configuration that only seems to name the database starts nothing, and makes no embedded database', async () => {
  await startedIn(async (folder) => {
    const config = path.join(folder, 'placement.conf');
    for (const [text, meant] of [
      ['[placement_databse]\nconnection', '[placement_database]'],
      ['[placement_database]\nconection', 'connection'],
    ] as const) {
      const url = 'postgresql://u:hunter2@127.0.0.1:1/d';
      await writeFile(config, `[api]\nauth_strategy = noauth2\n${text} = ${url}\n`);
      for (const [command, args, exitCode] of [
        ['placement-api', ['--port', '0'], 78],
        ['placement-manage', ['db', 'sync'], 78],
        ['placement-status', ['upgrade', 'check'], 255],
      ] as const) {
        const { code, stdout, stderr } = await runToEnd(command, ['--config-file', config, ...args], folder);
        assert.deepEqual([code, stdout], [exitCode, '']);
        const [warning = '', problem = '', ...more] = stderr.trim().split('\n');
        assert.ok(warning.startsWith('Warning: ') && warning.endsWith(`Did you mean ${meant}?`), stderr);
        assert.match(problem, /^placement-\w+: \S+\.conf:4: \[\w+\] \w+ seems to name the database, but only/);
        assert.deepEqual(more, []);
        assert.doesNotMatch(stderr, /hunter2/);
      }
    }
    assert.deepEqual(await readdir(folder), ['placement.conf']);
  });
});

test('the served PostgreSQL database is printed without its password', async () => {
  await withCommands('postgresql', 'migrated', async ({ folder, config }) => {
    const url = new URL(config.connection ?? '');
    url.password = 'hunter2';
    const server = startCommand('placement-api', ['--port', '0'], folder, { DATABASE_URL: url.href });
    await server.said(listens);
    server.child.kill('SIGTERM');
    const { stdout, stderr } = await server.ended;
    const name = url.pathname.slice(1);
    assert.match(stdout, new RegExp(`^placement-api serves the PostgreSQL database ${name} at ${url.host}$`, 'm'));
    assert.doesNotMatch(stdout + stderr, /hunter2|Warning/);
  });
});

test('noauth2 for other machines gives a warning, and [api] max_microversion takes effect', async () => {
  await withCommands(
    'embedded',
    'migrated',
    async ({ folder, configFile }) => {
      const args = ['--config-file', configFile];
      const server = startCommand('placement-api', [...args, '--host', '0.0.0.0'], folder);
      const [, url = ''] = await server.said(listens);
      const root = await fetch(url.replace('0.0.0.0', '127.0.0.1'));
      const { versions } = JSON.parse(await root.text());
      assert.equal(versions[0].max_version, '1.30');
      const headers = { 'x-auth-token': 'admin', 'openstack-api-version': 'placement 1.31' };
      const above = await fetch(`${url.replace('0.0.0.0', '127.0.0.1')}/traits`, { headers });
      assert.equal(above.status, 406);
      assert.equal(JSON.parse(await above.text()).errors[0].max_version, '1.30');
      server.child.kill('SIGTERM');
      const ended = await server.ended;
      assert.match(
        ended.stderr,
        /^Warning: With \[api\] auth_strategy = noauth2 every client that can reach 0\.0\.0\.0 may/,
      );

      const shown = await runToEnd('placement-api', [...args, '--port', '1234', '--show-config'], folder);
      assert.equal(shown.code, 0);
      assert.match(shown.stdout, /# --port\nport = 1234\n/);
    },
    'max_microversion = 1.30\n',
  );
});
