/** All workers have ended, and none can start: the database refuses their connections. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { startCommand, withCommands } from '../manage/commands.ts';
import { execute } from '../support/postgresql.ts';
import { until } from '../support/until.ts';

test('a connection is closed after a while, the log file has the reason, and the service recovers by itself', () =>
  withCommands('postgresql', 'migrated', async ({ folder, configFile, config }) => {
    const logFile = path.join(folder, 'placement.log');
    const env = { OS_DEFAULT__LOG_FILE: logFile };
    const server = startCommand('placement-api', ['--config-file', configFile, '--workers', '2'], folder, env);
    const [, url = ''] = await server.said(/listens on (http:\S+)/);
    const lines = async () =>
      (await readFile(logFile, 'utf8'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
    const database = new URL(config.connection ?? '');
    const name = database.pathname.slice(1);
    const maintenance = new URL(database);
    maintenance.pathname = '/postgres';
    const set = (value: boolean) => execute(maintenance.href, `alter database ${name} allow_connections ${value}`);

    await until(
      'both serve',
      async () => (await lines()).filter(({ msg }) => msg === 'This worker serves').length === 2,
    );
    await set(false);
    for (const { msg, pid } of await lines()) if (msg === 'This worker serves') process.kill(pid, 'SIGKILL');
    const isReason = ({ msg }: { readonly msg: string }) =>
      /^This worker could not start: .*not currently accepting/.test(msg);
    await until('the reason is in the log', async () => (await lines()).some(isReason));
    const startedMs = performance.now();
    await assert.rejects(fetch(`${url}/`, { signal: AbortSignal.timeout(60_000) }), /fetch failed/);
    assert.ok(performance.now() - startedMs < 40_000);
    await set(true);
    await until('it serves again', () =>
      fetch(`${url}/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 0);
  }));
