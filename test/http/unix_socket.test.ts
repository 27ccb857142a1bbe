/** `[api] host = unix:...`: the service on a UNIX socket, by one process and by several. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { suite, test } from 'node:test';
import { promisify } from 'node:util';
import { listenOnSocket } from '../../src/http/server/listen.ts';
import { placement } from '../client/command.ts';
import { type CommandWorld, runToEnd, startCommand, withCommands } from '../manage/commands.ts';
import { until } from '../support/until.ts';

/** The status and the body of an answer, which came by a socket. */
async function ask(
  socketPath: string,
  url: string,
  options: http.RequestOptions = {},
  body = '',
): Promise<readonly [status: number | undefined, body: string]> {
  const headers = { 'x-auth-token': 'admin', 'content-type': 'application/json', 'content-length': body.length };
  const request = http.request({ socketPath, path: url, headers, ...options }).end(body);
  const [response]: http.IncomingMessage[] = await once(request, 'response');
  assert.ok(response !== undefined);
  const text = (await response.setEncoding('utf8').toArray()).join('');
  return [response.statusCode, text];
}

/** The permissions of a file, as `chmod` takes them; undefined if there is none. */
const modeOf = (file: string): Promise<string | undefined> =>
  stat(file).then(
    ({ mode }) => (mode & 0o777).toString(8),
    () => undefined,
  );

/** A second configuration file, which is read after that of the world. */
async function configured({ folder, configFile }: CommandWorld, text: string): Promise<readonly string[]> {
  const file = path.join(folder, 'socket.conf');
  await writeFile(file, text);
  return ['--config-file', configFile, '--config-file', file];
}

for (const workers of [1, 2]) {
  suite(`a UNIX socket, with ${workers === 1 ? 'one process' : 'two workers'}`, () => {
    test('serves requests, is refused to a second service, is replaced after a kill, and is removed when its service ends', () =>
      withCommands(workers === 1 ? 'embedded' : 'postgresql', 'migrated', async (world) => {
        const socket = path.join(world.folder, 'api.sock');
        const metrics = path.join(world.folder, 'metrics.sock');
        const args = await configured(
          world,
          `[api]\nhost = unix:${socket}\nworkers = ${workers}\n[metrics]\nhost = unix:${metrics}\n`,
        );
        const first = startCommand('placement-api', args, world.folder);
        const [said] = await first.said(/^.*listens on .*\n/m);
        assert.match(said, new RegExp(`listens on unix:${socket}\n$`));
        await first.said(new RegExp(`serves /metrics on unix:${metrics}\n`));
        assert.deepEqual([await modeOf(socket), await modeOf(metrics)], ['660', '660']);

        const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
        const uuid = '00000000-0000-4000-8000-000000000001';
        const provider = JSON.stringify({ name: 'one', uuid });
        assert.equal((await ask(socket, '/resource_providers', { method: 'POST', agent }, provider))[0], 201);
        for (const list of await Promise.all(
          Array.from({ length: 8 }, () => ask(socket, '/resource_providers', { agent })),
        )) {
          assert.deepEqual([list[0], JSON.parse(list[1]).resource_providers.length], [200, 1]);
        }
        agent.destroy();
        const env = { OS_ENDPOINT: `unix:${socket}`, OS_TOKEN: 'admin' };
        const made = await placement(['provider', 'create', 'two'], env);
        assert.deepEqual([made.code, made.stderr], [0, '']);
        const listed = await placement(['provider', 'list', '-c', 'name', '--format', 'value'], env);
        assert.deepEqual([listed.code, listed.stdout], [0, 'one\ntwo\n'], listed.stderr);
        const following = await placement(['drain', 'two', '--until-empty', '--os-endpoint', env.OS_ENDPOINT], env);
        assert.equal(following.code, 0, following.stderr);
        assert.match((await ask(metrics, '/metrics'))[1], /placement_requests_total\{/);
        assert.equal((await ask(socket, '/metrics'))[0], 404);
        if (spawnSync('curl', ['--version']).status === 0) {
          const curl = ['-s', '--unix-socket', socket, 'http://placement/readyz'];
          assert.equal((await promisify(execFile)('curl', curl)).stdout, 'OK');
        }

        const { code, stderr } = await runToEnd('placement-api', args, world.folder);
        assert.equal(code, 71);
        const refused = 'another program listens on it. Stop it, or choose another file by';
        assert.ok(stderr.includes(`Cannot listen on unix:${socket}: ${refused} --host or [api] host.`), stderr);
        assert.equal((await ask(socket, '/'))[0], 200);

        first.child.kill('SIGKILL');
        await first.ended;
        assert.equal(await modeOf(socket), '660');
        await until('the workers of the killed process have ended', () =>
          ask(socket, '/').then(
            () => false,
            () => true,
          ),
        );

        const second = startCommand('placement-api', args, world.folder, { OS_API__SOCKET_MODE: '0600' });
        await second.said(/listens on /);
        assert.equal(await modeOf(socket), '600');
        assert.equal((await ask(socket, '/resource_providers'))[0], 200);
        second.child.kill('SIGTERM');
        assert.equal((await second.ended).code, 0);
        assert.deepEqual([await modeOf(socket), await modeOf(metrics)], [undefined, undefined]);
      }));
  });
}

test('a worker that ends is replaced, and connections that come meanwhile are answered', () =>
  withCommands('postgresql', 'migrated', async (world) => {
    const socket = path.join(world.folder, 'api.sock');
    const server = startCommand('placement-api', await configured(world, '[api]\nworkers = 2\n'), world.folder, {
      OS_API__HOST: `unix:${socket}`,
    });
    await server.said(/listens on unix:/);
    const serving = () => [...server.log().matchAll(/"pid":(\d+),"msg":"This worker serves"/g)];
    await until('both workers have logged that they serve', () => serving().length === 2);
    process.kill(Number(serving()[0]?.[1]), 'SIGKILL');
    for (let count = 0; count < 20; count += 1) assert.equal((await ask(socket, '/resource_providers'))[0], 200);
    await until('its successor serves', () => serving().length === 3);
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 0);
  }));

test('a socket that cannot be made is an error before anything starts, and a file that is no socket is not replaced', () =>
  withCommands('embedded', 'migrated', async (world) => {
    const file = path.join(world.folder, 'file');
    await writeFile(file, 'precious');
    for (const [config, code, message] of [
      [
        `[api]\nhost = unix:${file}\n`,
        71,
        `Cannot listen on unix:${file}: there is a file of this name, and it is no socket`,
      ],
      [`[api]\nhost = unix:${file}-s/api\n`, 71, `Cannot listen on unix:${file}-s/api: there is no such folder`],
      [
        '[api]\nhost = unix:api.sock\n',
        78,
        '[api] host = "unix:api.sock": must be unix: and the absolute name of a file',
      ],
      [
        `[api]\nhost = unix:/${'x'.repeat(103)}\n`,
        78,
        'must name a socket by at most 103 bytes, and its name has 104.',
      ],
      ['[api]\nsocket_mode = rw\n', 78, '[api] socket_mode = "rw": must be three octal digits, such as 660.'],
      ['[api]\nhost = unix:/tmp/a\n[metrics]\nport = 1\n', 78, '[metrics] port = "1": needs [metrics] host as well'],
    ] as const) {
      const { stderr, ...ended } = await runToEnd('placement-api', await configured(world, config), world.folder);
      assert.deepEqual(ended, { code, stdout: '' }, stderr);
      assert.ok(stderr.includes(message), stderr);
    }
    assert.equal(await readFile(file, 'utf8'), 'precious');
  }));

test('a socket is for its owner alone until it has its permissions', () =>
  withCommands('embedded', 'migrated', async ({ folder }) => {
    const file = path.join(folder, 'own.sock');
    const server = net.createServer();
    let first: number | undefined;
    const umask = process.umask();
    server.once('listening', () => {
      first = statSync(file).mode & 0o777;
    });
    try {
      await listenOnSocket(server, file, '660');
      assert.deepEqual([first, await modeOf(file)], [0o600, '660']);
      assert.equal(process.umask(), umask, 'other files are made as before');
    } finally {
      server.close();
    }
  }));
