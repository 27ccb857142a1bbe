import assert from 'node:assert/strict';
import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { runToEnd, startCommand, withCommands } from '../manage/commands.ts';

const globalRequestId = 'req-11111111-1111-4111-8111-111111111111';
const headers = {
  'x-auth-token': 'ada:web',
  'x-roles': 'admin',
  'openstack-api-version': 'placement 1.39',
  'x-openstack-request-id': globalRequestId,
};

/** On a busy machine any statement may be slow: its line would come before that of its request. */
const noSlowStatements = '[placement_database]\nslow_statement_ms = -1\n';

/** Starts the service with its own configuration. `ended` has the standard error. */
async function serving(
  moreConfig: string,
  use: (server: ReturnType<typeof startCommand>, url: string, folder: string) => Promise<void>,
): Promise<void> {
  const serve = async ({ folder, configFile }: { readonly folder: string; readonly configFile: string }) => {
    const server = startCommand('placement-api', ['--config-file', configFile], folder);
    const [, url = ''] = await server.said(/listens on (\S+)\n/);
    await use(server, url, folder);
  };
  await withCommands('embedded', 'migrated', serve, moreConfig);
}

async function answerTo(
  url: string,
  globalId = globalRequestId,
): Promise<{ readonly requestId: string; readonly length: number }> {
  const answer = await fetch(url, { headers: { ...headers, 'x-openstack-request-id': globalId } });
  return {
    requestId: answer.headers.get('x-openstack-request-id') ?? '',
    length: (await answer.arrayBuffer()).byteLength,
  };
}

async function end(server: ReturnType<typeof startCommand>): Promise<readonly string[]> {
  server.child.kill('SIGTERM');
  const { code, stderr } = await server.ended;
  assert.equal(code, 0);
  return stderr.trimEnd().split('\n');
}

suite('the log of a running service', () => {
  test('has a line of JSON for a request, and slow statements with the request that waited for them', () =>
    serving('[placement_database]\nslow_statement_ms = 0\n', async (server, url) => {
      const { requestId, length } = await answerTo(`${url}/resource_providers?name=secret-of-mine`);
      await answerTo(`${url}/traits`, 'req-1] bob admin [');
      for (const path of ['/healthcheck', '/readyz', '/metrics']) await answerTo(url + path);
      await answerTo(`${url}/metrics/none`);
      const entries = (await end(server)).map((line) => JSON.parse(line));
      const [request, withoutId, afterProbes] = entries.filter(({ msg }) => msg === 'request');
      assert.equal(afterProbes.url, '/metrics/none', 'probes and scrapes that succeed have no line');
      assert.equal(withoutId.globalRequestId, undefined, 'a text of another form is not logged');
      assert.ok(Math.abs(Date.parse(request.time) - Date.now()) < 60_000 && request.ms > 0);
      assert.deepEqual(
        { ...request, time: 0, ms: 0 },
        {
          level: 'info',
          time: 0,
          requestId,
          globalRequestId,
          method: 'GET',
          url: '/resource_providers?name=secret-of-mine',
          client: '127.0.0.1',
          status: 200,
          bytes: length,
          microversion: '1.39',
          user: 'ada',
          project: 'web',
          ms: 0,
          msg: 'request',
        },
      );
      const statements = entries.filter(
        ({ msg, ...entry }) => msg === 'Slow statement' && entry.requestId === requestId,
      );
      assert.ok(statements.length > 0);
      for (const { sql, ms, level, globalRequestId: operation } of statements) {
        assert.deepEqual([level, typeof ms, operation], ['warn', 'number', globalRequestId]);
        assert.match(sql, /^(select|with) [^\n]*\$1/);
        assert.ok(!sql.includes('secret-of-mine'));
      }
    }));

  test('has the form of oslo.log in a file, which SIGHUP opens again', () =>
    serving(
      `[DEFAULT]\nuse_json = false\nlog_file = placement.log\nlog_dir = .\n${noSlowStatements}`,
      async (server, url, folder) => {
        const file = path.join(folder, 'placement.log');
        const lineWith = async (text: string): Promise<string> => {
          for (const until = Date.now() + 60_000; Date.now() < until; await sleep(20)) {
            const found = (await readFile(file, 'utf8').catch(() => ''))
              .split('\n')
              .find((line) => line.includes(text));
            if (found !== undefined) return found;
          }
          throw new Error(`${text} is not in the log.`);
        };
        const first = await answerTo(`${url}/resource_providers`);
        const started = await lineWith('placement-api serves the embedded database');
        assert.match(started, / INFO placement \[-\] placement-api serves the embedded database/);
        assert.match(await lineWith(' listens on '), / INFO placement \[-\] placement-api \d\S* listens on http:/);
        const line = await lineWith(first.requestId);
        const expected =
          `INFO placement.requestlog [${globalRequestId} ${first.requestId} ada web - - - -] 127.0.0.1 ` +
          `"GET /resource_providers" status: 200 len: ${first.length} microversion: 1.39 ms: `;
        assert.ok(line.includes(expected), line);
        assert.match(line.replace(expected, ''), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \d+ [\d.]+$/);
        await rename(file, `${file}.1`);
        server.child.kill('SIGHUP');
        await lineWith('SIGHUP: the configuration was read again, the log file was opened again, ');
        const second = await answerTo(`${url}/resource_providers`);
        await lineWith(second.requestId);
        assert.ok(!(await readFile(`${file}.1`, 'utf8')).includes(second.requestId));
        assert.deepEqual(await end(server), ['']);
      },
    ));

  test('neither ends nor blocks the service if it cannot be written', () =>
    serving('[DEFAULT]\nlog_file = /dev/full\n', async (server, url) => {
      for (let count = 0; count < 20; count += 1) {
        assert.equal((await fetch(`${url}/resource_providers`, { headers })).status, 200);
      }
      await end(server);
    }));

  test('has what a start says in its file as well, also one that fails', () =>
    withCommands('embedded', 'migrated', async ({ folder }) => {
      const configFile = path.join(folder, 'failing.conf');
      await writeFile(
        configFile,
        `[DEFAULT]\nlog_file = ${folder}/failing.log\nuse_json = true\n[api]\nauth_strategy = noauth2\nport = 0\nwrkers = 2\n` +
          '[placement_database]\nconnection = postgresql://127.0.0.1:1/nowhere\nmax_retries = 0\n',
      );
      const { code, stderr } = await runToEnd('placement-api', ['--config-file', configFile], folder);
      assert.equal(code, 69);
      const lines = (await readFile(`${folder}/failing.log`, 'utf8'))
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      const [warning, failure] = lines;
      assert.equal(lines.length, 2);
      assert.equal(warning.level, 'warn');
      assert.match(warning.msg, /wrkers/);
      assert.ok(stderr.includes(`Warning: ${warning.msg}\n`));
      assert.deepEqual([failure.level, failure.msg], ['fatal', 'The start failed']);
      const [, said = ''] = /^placement-api: (.+)$/m.exec(stderr) ?? [];
      // The log also has the cause.
      assert.ok(said !== '' && failure.err.message.startsWith(said), stderr);
    }));

  test('ends the start with one line if it cannot be opened', () =>
    withCommands(
      'embedded',
      'migrated',
      async ({ folder, configFile }) => {
        const { code, stderr } = await runToEnd('placement-api', ['--config-file', configFile], folder);
        assert.equal(code, 1);
        assert.match(
          stderr,
          /^placement-api: The log file \/.*\/nowhere\/placement-api\.log \(.*ENOENT[^\n]* in a folder that exists, [^\n]*\n$/,
        );
      },
      '[DEFAULT]\nlog_dir = nowhere\n',
    ));
});
