/** SIGHUP: what a service takes of a changed configuration while it serves, and what it says about the rest. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { suite, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { until } from '../support/until.ts';
import { startCommand, withCommands } from './commands.ts';

type Line = {
  readonly level: string;
  readonly msg: string;
  readonly worker?: number;
  readonly pid?: number;
  readonly url?: string;
};

/** The lines of a log in JSON, which may not be there yet. */
const linesOf = async (file: string): Promise<readonly Line[]> =>
  (await readFile(file, 'utf8').catch(() => ''))
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));

for (const workers of [1, 2]) {
  suite(`with ${workers === 1 ? 'one process' : 'two workers'}`, () => {
    test('SIGHUP takes log and policy, names what needs a restart, and drops no connection', () =>
      withCommands(workers === 1 ? 'embedded' : 'postgresql', 'migrated', async ({ folder, configFile }) => {
        const at = (name: string) => path.join(folder, name);
        const more = at('more.conf');
        await mkdir(at('logs'));
        await writeFile(at('open.yaml'), '{}\n');
        await writeFile(at('closed.yaml'), '"placement:resource_providers:list": "!"\n');
        await writeFile(at('broken.yaml'), '"placement:resource_providers:list": "role:"and"\n');
        const configure = (log: string, policy: string, rest: string) =>
          writeFile(more, `[DEFAULT]\nuse_json = true\n${log}[oslo_policy]\npolicy_file = ${at(policy)}\n${rest}`);
        await configure(`log_file = ${at('logs/a.log')}\n`, 'open.yaml', `[api]\nworkers = ${workers}\n`);
        const server = startCommand('placement-api', ['--config-file', configFile, '--config-file', more], folder);
        const [, url = ''] = await server.said(/listens on (\S+)\n/);
        /** The line of the next SIGHUP in this file. */
        const renewed = async (name: string): Promise<Line> => {
          const sighups = async () => (await linesOf(at(name))).filter(({ msg }) => msg.startsWith('SIGHUP: '));
          const before = (await sighups()).length;
          server.child.kill('SIGHUP');
          await until('the log tells', async () => (await sighups()).length > before);
          const line = (await sighups()).at(-1);
          assert.ok(line !== undefined);
          return line;
        };
        /** The statuses of lists on new connections, which reach all workers. */
        const statuses = async (): Promise<readonly number[]> => {
          const headers = { 'x-auth-token': 'admin', connection: 'close' };
          const lists = Array.from({ length: 2 * workers }, () => fetch(`${url}/resource_providers`, { headers }));
          return [...new Set((await Promise.all(lists)).map(({ status }) => status))];
        };
        assert.deepEqual(await statuses(), [200]);

        // The first half of a request, of which the second comes after all that SIGHUP does.
        const body = JSON.stringify({ name: 'half', uuid: '00000000-0000-4000-8000-000000000001' });
        const headers = { 'x-auth-token': 'admin', 'content-type': 'application/json', 'content-length': body.length };
        const half = http.request(`${url}/resource_providers`, { method: 'POST', headers });
        half.write(body.slice(0, 10));

        const rest = `[api]\nworkers = ${workers}\nclient_timeout = 90\n[placement]\nmax_wait = 7\n`;
        await configure(`log_file = ${at('logs/b.log')}\ndebug = true\n`, 'closed.yaml', rest);
        const all = await renewed('logs/b.log');
        const restart = 'Changed, and in force only after a restart: [api] client_timeout, [placement] max_wait.';
        assert.deepEqual(
          [all.level, all.msg],
          [
            'warn',
            'SIGHUP: the configuration was read again, the log file was opened again, the policy files were read again, and ' +
              'there is no TLS certificate to read again. Now in force: [DEFAULT] debug, [DEFAULT] log_file, ' +
              `[oslo_policy] policy_file. ${restart}`,
          ],
        );
        await until('all refuse', async () => (await statuses()).every((status) => status === 403));
        // Lines at level debug, in the new file.
        for (const probe of ['/healthcheck', '/']) {
          await fetch(`${url}${probe}`);
          await until(`${probe} is logged`, async () =>
            (await linesOf(at('logs/b.log'))).some((line) => line.level === 'debug' && line.url === probe),
          );
        }

        // What is broken stays, and nothing else does. What needs a restart is said each time.
        await configure(`log_file = ${at('none/c.log')}\n`, 'broken.yaml', rest);
        const partly = await renewed('logs/b.log');
        assert.equal(partly.level, 'error');
        assert.match(partly.msg, /the log stays as it was, the policy rules stay as they were, and there is no TLS/);
        const [, mistakes = ''] = partly.msg.split(`again. ${restart} `);
        assert.match(
          mistakes,
          /^Mistake: .*none\/c\.log \(\[DEFAULT\] log_file and log_dir\) cannot be opened.* Mistake: .*broken\.yaml:1:\d+: /,
        );

        await writeFile(more, '[api]\nworkers = many\n');
        const broken = await renewed('logs/b.log');
        assert.equal(broken.level, 'error');
        assert.match(broken.msg, /^SIGHUP: the configuration stays as it was, the log file was opened again, /);
        const mistake = broken.msg.split(' Mistake: ')[1];
        assert.ok(mistake?.startsWith(`${more}:2: [api] workers = "many": must be an integer`), broken.msg);
        assert.doesNotMatch(await readFile(at('logs/b.log'), 'utf8'), /"stack"/);
        assert.deepEqual(await statuses(), [403]);

        half.end(body.slice(10));
        const [response]: http.IncomingMessage[] = await once(half, 'response');
        assert.equal(response?.statusCode, 201);
        response?.resume();

        if (workers > 1) {
          const ready = async () =>
            (await linesOf(at('logs/b.log'))).filter(({ msg }) => msg === 'This worker serves').length;
          const before = await ready();
          const first = (await readFile(at('logs/a.log'), 'utf8')).match(/"pid":(\d+),"msg":"This worker serves"/)?.[1];
          process.kill(Number(first), 'SIGKILL');
          await until('its successor serves, with the new log', async () => (await ready()) > before);
          assert.deepEqual(await statuses(), [403]);
        }
        server.child.kill('SIGTERM');
        assert.equal((await server.ended).code, 0);
      }));
  });
}

test('SIGHUP is an error as long as a worker keeps rules whose file was removed, and one that hangs takes the new ones later', () =>
  withCommands('postgresql', 'migrated', async ({ folder, configFile }) => {
    const policy = path.join(folder, 'policy.yaml');
    const more = path.join(folder, 'more.conf');
    const log = path.join(folder, 'log.json');
    await writeFile(
      more,
      `[DEFAULT]\nuse_json = true\nlog_file = ${log}\n[oslo_policy]\npolicy_file = ${policy}\n[api]\nworkers = 2\n`,
    );
    const server = startCommand('placement-api', ['--config-file', configFile, '--config-file', more], folder);
    const [, url = ''] = await server.said(/listens on (\S+)\n/);
    const list = async (): Promise<number> =>
      (await fetch(`${url}/resource_providers`, { headers: { 'x-auth-token': 'admin', connection: 'close' } })).status;
    // No worker has met the file at its start.
    await writeFile(policy, '"placement:resource_providers:list": "!"\n');
    await until('a worker has read it', async () => (await list()) === 403);
    await rm(policy);
    const signals = async () => (await linesOf(log)).filter(({ msg }) => msg.startsWith('SIGHUP: '));
    const renewed = async (): Promise<Line | undefined> => {
      const before = (await signals()).length;
      server.child.kill('SIGHUP');
      await until('the log tells', async () => (await signals()).length > before);
      return (await signals()).at(-1);
    };
    for (const _signal of [1, 2]) {
      const line = await renewed();
      assert.equal(line?.level, 'error');
      assert.match(
        line?.msg ?? '',
        /the policy rules stay as they were, and [^.]*\. Mistake: Worker \d: The policy file \S+policy\.yaml is gone\.$/,
      );
    }
    assert.equal(await list(), 403);
    // Each of the signals also warns of the file that the configuration names.
    const warnings = (await linesOf(log)).filter(({ msg }) => msg.includes('[oslo_policy] policy_file ='));
    assert.ok(warnings.length > 0);
    for (const { msg } of warnings)
      assert.match(msg, /no such file, and a process that starts without it has the default rules\.$/);

    await writeFile(policy, '{}\n');
    assert.match((await renewed())?.msg ?? '', /the policy files were read again/);
    const lists = async () => new Set(await Promise.all(Array.from({ length: 8 }, list)));
    assert.deepEqual(await lists(), new Set([200]));

    const hanging = (await linesOf(log)).find(({ msg }) => msg === 'This worker serves');
    process.kill(Number(hanging?.pid), 'SIGSTOP');
    await writeFile(policy, '"placement:resource_providers:list": "!"\n');
    assert.match((await renewed())?.msg ?? '', /the policy files were read again/);
    const [complaint] = (await linesOf(log)).filter(({ msg }) => msg.startsWith('A worker does not answer: '));
    assert.deepEqual([complaint?.level, complaint?.worker], ['warn', hanging?.worker]);
    process.kill(Number(hanging?.pid), 'SIGCONT');
    await until('all workers have it', async () => isDeepStrictEqual(await lists(), new Set([403])));
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 0);
  }));

test('SIGHUP does not end a service that still waits for its database', () =>
  withCommands('embedded', 'migrated', async ({ folder }) => {
    const file = path.join(folder, 'waiting.conf');
    await writeFile(
      file,
      '[api]\nauth_strategy = noauth2\nport = 0\n[placement_database]\nconnection = postgresql://127.0.0.1:1/none\n' +
        'max_retries = -1\nretry_interval = 1\n',
    );
    const server = startCommand('placement-api', ['--config-file', file], folder);
    const tries = () => server.log().match(/cannot be reached/g)?.length ?? 0;
    await until('it waits', () => tries() > 0);
    server.child.kill('SIGHUP');
    const before = tries();
    await until('it tries again', () => tries() > before);
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 0);
  }));
