/** The disk of the log file is full, and gets room again while no request comes. Only root may mount such a disk. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { startCommand, withCommands } from '../manage/commands.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
const mayMount =
  process.platform === 'linux' &&
  spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).status === 0;

test('lines that could not be written are written once the disk has space, without a further line', {
  skip: mayMount ? false : 'no disk can be mounted',
}, async () => {
  const disk = await mkdtemp(path.join(os.tmpdir(), 'placement-log-'));
  await run('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'placement-log', disk]);
  try {
    const logFile = path.join(disk, 'placement.log');
    const fill = path.join(disk, 'fill');
    await withCommands(
      'embedded',
      'migrated',
      async ({ folder, configFile }) => {
        const server = startCommand('placement-api', ['--config-file', configFile], folder);
        const [, url = ''] = await server.said(/listens on (\S+)\n/);
        const isWritten = async (): Promise<boolean> =>
          (await (await fetch(`${url}/metrics`)).text()).includes('placement_log_writable 1');
        await writeFile(fill, Buffer.alloc(2 ** 20)).catch(() => {}); // what has no room
        const path = '/resource_providers?name=while-it-is-full';
        const long = `&member_of=in:${Array.from({ length: 1000 }, () => crypto.randomUUID()).join(',')}`;
        await fetch(`${url}${path}${long}`, {
          headers: { 'x-auth-token': 'admin', 'openstack-api-version': 'placement 1.39' },
        });
        await until('it cannot be written', async () => !(await isWritten()));
        await rm(fill);
        await until('it is written again', isWritten);
        assert.match(await readFile(logFile, 'utf8'), /while-it-is-full.*"msg":"request"/);
        server.child.kill('SIGTERM');
        await server.ended;
      },
      `[DEFAULT]\nlog_file = ${logFile}\n`,
    );
  } finally {
    await run('umount', [disk]);
    await rm(disk, { recursive: true });
  }
});
