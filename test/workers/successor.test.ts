/** A worker that starts after a SIGHUP has the settings that the SIGHUP read. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { startCommand, withCommands } from '../manage/commands.ts';
import { until } from '../support/until.ts';

test('a worker that replaces another one has the log file and the policy that SIGHUP read', () =>
  withCommands('postgresql', 'migrated', async ({ folder, configFile }) => {
    const changed = path.join(folder, 'changed.conf');
    const configure = (name: string) =>
      writeFile(
        changed,
        `[DEFAULT]\nlog_file = ${folder}/${name}.log\n[oslo_policy]\npolicy_file = ${folder}/${name}.yaml\n`,
      );
    await writeFile(path.join(folder, 'first.yaml'), '{}');
    await writeFile(path.join(folder, 'second.yaml'), '"placement:traits:list": "!"');
    await configure('first');
    const args = ['--config-file', configFile, '--config-file', changed, '--workers', '2'];
    const server = startCommand('placement-api', args, folder);
    const [, url = ''] = await server.said(/listens on (http:\S+)/);
    /** The statuses of new connections. Both of two workers have answered some of them. */
    const statuses = async (): Promise<readonly number[]> => {
      const headers = { 'x-auth-token': 'admin', 'openstack-api-version': 'placement 1.6', connection: 'close' };
      const answers = await Promise.all(Array.from({ length: 4 }, () => fetch(`${url}/traits`, { headers })));
      return [...new Set(answers.map(({ status }) => status))];
    };
    const serving = async (name: string) => {
      const text = await readFile(path.join(folder, `${name}.log`), 'utf8').catch(() => '');
      return [...text.matchAll(/"pid":(\d+),"msg":"This worker serves"/g)].map(([, pid]) => Number(pid));
    };
    await until('both say that they serve', async () => (await serving('first')).length === 2);
    assert.deepEqual(await statuses(), [200]);
    await configure('second');
    server.child.kill('SIGHUP');
    await until('both have the other policy', async () => (await statuses()).every((status) => status === 403));
    const [worker = 0] = await serving('first');
    process.kill(worker, 'SIGKILL');
    await until(
      'its successor says in the other file that it serves',
      async () => (await serving('second')).length === 1,
    );
    assert.deepEqual(await statuses(), [403]);
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 0);
  }));
