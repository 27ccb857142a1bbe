/**
 * The systemd unit relies on this: the service reports when it is ready, so that `systemctl restart` can wait for it.
 */
import assert from 'node:assert/strict';
import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { flagsOf, nodeFlags } from '../support/node_flags.ts';
import { until } from '../support/until.ts';
import { startCommand, withCommands } from './commands.ts';

const listens = /^placement-api \S+ listens on (http:\/\/\S+)\n/m;

const unitFile = path.join(import.meta.dirname, '..', '..', 'deploy', 'placement-api.service');

test('the unit gives Node.js the flags that `npm start` gives it', async () => {
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(await readFile(unitFile, 'utf8')) ?? [];
  assert.ok(nodeFlags.length > 0);
  assert.deepEqual(flagsOf(command), nodeFlags);
});

test('under the unit a log file has the mode that docs/security.md says', async () => {
  const [, umask = ''] = /^UMask=(\d+)$/m.exec(await readFile(unitFile, 'utf8')) ?? [];
  await withCommands('embedded', 'migrated', async ({ folder, configFile }) => {
    const before = process.umask(Number.parseInt(umask, 8));
    const environment = { OS_DEFAULT__LOG_DIR: folder };
    const server = startCommand('placement-api', ['--config-file', configFile], folder, environment);
    process.umask(before);
    await server.said(listens);
    const { mode } = await stat(path.join(folder, 'placement-api.log'));
    assert.equal((mode & 0o777).toString(8), '640');
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 0);
  });
});

test('a service of Type=notify reports to systemd when and where it listens', async () => {
  const unit = await readFile(unitFile, 'utf8');
  assert.match(unit, /^Type=notify$/m);
  assert.match(unit, /^NotifyAccess=all$/m);
  await withCommands('embedded', 'migrated', async ({ folder, configFile }) => {
    // A stand-in for systemd-notify, which is not on every machine and needs a socket that Node.js cannot open.
    const programs = path.join(folder, 'programs');
    const notified = path.join(folder, 'notified');
    await mkdir(programs);
    await writeFile(
      path.join(programs, 'systemd-notify'),
      `#!/bin/sh\nprintf '%s\\n' "$NOTIFY_SOCKET" "$@" >'${notified}'\n`,
    );
    await chmod(path.join(programs, 'systemd-notify'), 0o755);
    const environment = { PATH: programs, NOTIFY_SOCKET: '/run/systemd/notify' };
    const server = startCommand('placement-api', ['--config-file', configFile], folder, environment);
    const [line, url = ''] = await server.said(listens);
    const expected = ['/run/systemd/notify', '--ready', `--status=${line}`].join('\n');
    await until('systemd is notified', async () => (await readFile(notified, 'utf8').catch(() => '')) === expected);
    assert.equal((await fetch(`${url}/readyz`)).status, 200);
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 0);
  });
});

test('a service that cannot reach systemd logs this, and serves', async () => {
  await withCommands('embedded', 'migrated', async ({ folder, configFile }) => {
    const environment = { PATH: folder, NOTIFY_SOCKET: '/run/systemd/notify' };
    const server = startCommand('placement-api', ['--config-file', configFile], folder, environment);
    const [, url = ''] = await server.said(listens);
    assert.equal((await fetch(`${url}/readyz`)).status, 200);
    server.child.kill('SIGTERM');
    const { code, stderr } = await server.ended;
    assert.equal(code, 0);
    assert.match(stderr, /spawn systemd-notify ENOENT.*systemd could not be notified that the service is ready/);
  });
});
