/** `placement-api --check`: whether the service of a configuration is ready. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { suite, test } from 'node:test';
import { selfSigned } from '../keystone/certificate.ts';
import { freePort } from '../support/free_port.ts';
import { execute } from '../support/postgresql.ts';
import { runToEnd, startCommand, withCommands } from './commands.ts';

type Checked = { readonly code: number | null; readonly said: string };

/** Calls back with the check of a configuration, and a function that starts its service. */
const withConfig = (
  engine: 'embedded' | 'postgresql',
  config: (folder: string) => string | Promise<string>,
  use: (
    check: (...args: readonly string[]) => Promise<Checked>,
    start: () => Promise<void>,
    database: string | undefined,
  ) => Promise<void>,
): Promise<void> =>
  withCommands(engine, 'migrated', async ({ folder, configFile, config: database }) => {
    const file = path.join(folder, 'checked.conf');
    await writeFile(file, await config(folder));
    const args = ['--config-file', configFile, '--config-file', file];
    const check = async (...more: readonly string[]): Promise<Checked> => {
      const { code, stdout, stderr } = await runToEnd('placement-api', [...args, '--check', ...more], folder);
      assert.ok(stdout === '' || stderr === '', 'it says one thing');
      return { code, said: stdout + stderr };
    };
    const start = async (): Promise<void> => {
      await startCommand('placement-api', args, folder).said(/listens on \S+\n/);
    };
    await use(check, start, database.connection);
  });

const ready = (url: string): Checked => ({ code: 0, said: `The service at ${url} is ready.\n` });

suite('placement-api --check', () => {
  test('checks whether a service listens, on all addresses and with names that clients must use', async () => {
    const port = await freePort();
    const config = `[api]\nhost = 0.0.0.0\nport = ${port}\nallowed_hosts = placement.example.com\n`;
    await withConfig(
      'embedded',
      () => config,
      async (check, start) => {
        assert.deepEqual(await check(), {
          code: 1,
          said: `placement-api: The service does not answer at http://127.0.0.1:${port}: connect ECONNREFUSED 127.0.0.1:${port}.\n`,
        });
        await start();
        assert.deepEqual(await check(), ready(`http://127.0.0.1:${port}`));
        assert.equal((await check('--port', '1')).code, 1);
      },
    );
  });

  test('asks by TLS, whatever name the certificate has', async () => {
    const port = await freePort();
    const config = async (folder: string): Promise<string> => {
      const { cert, key } = selfSigned();
      await writeFile(`${folder}/tls.pem`, cert);
      await writeFile(`${folder}/tls.key`, key);
      return `[api]\nhost = ::\nport = ${port}\n[ssl]\ncert_file = ${folder}/tls.pem\nkey_file = ${folder}/tls.key\n`;
    };
    await withConfig('embedded', config, async (check, start) => {
      await start();
      assert.deepEqual(await check(), ready(`https://[::1]:${port}`));
    });
  });

  test('asks by a UNIX socket', async () => {
    let socket = '';
    const config = (folder: string): string => {
      socket = `unix:${folder}/api.sock`;
      return `[api]\nhost = ${socket}\n`;
    };
    await withConfig('embedded', config, async (check, start) => {
      const { code, said } = await check();
      assert.equal(code, 1);
      assert.ok(said.startsWith(`placement-api: The service does not answer at ${socket}: `), said);
      await start();
      assert.deepEqual(await check(), ready(socket));
    });
  });

  test('says why a service with workers is not ready', async () => {
    const port = await freePort();
    await withConfig(
      'postgresql',
      () => `[api]\nport = ${port}\nworkers = 2\n`,
      async (check, start, database = '') => {
        await start();
        assert.deepEqual(await check(), ready(`http://127.0.0.1:${port}`));
        await dropped(database);
        const { code, said } = await check();
        // A connection that has just broken, or a new one that is refused.
        const reason =
          /^placement-api: The service at \S+ is not ready: The database (cannot be reached|refuses the login of the service: .*)\.\n$/;
        assert.equal(code, 1);
        assert.match(said, reason);
      },
    );
  });

  test('ends with 1 where nothing answers in time, the port is not known, or the configuration is wrong', async () => {
    const silent = net.createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    try {
      const address = silent.address();
      assert.ok(address !== null && typeof address === 'object');
      const { port } = address;
      await withConfig(
        'embedded',
        () => '',
        async (check) => {
          assert.deepEqual(await check('--port', `${port}`), {
            code: 1,
            said: `placement-api: The service does not answer at http://127.0.0.1:${port}: not within 4 s.\n`,
          });
          const unknown = await check();
          assert.equal(unknown.code, 1);
          assert.match(unknown.said, /^placement-api: \[api\] port = 0 is any free port, [^\n]*--port\.\n$/);
          const wrong = await check('--port', 'many');
          assert.equal(wrong.code, 1);
          assert.match(wrong.said, /--port.*many/);
        },
      );
    } finally {
      silent.close();
    }
  });
});

/** Removes a database while a service is connected to it. */
async function dropped(connection: string): Promise<void> {
  const url = new URL(connection);
  const name = url.pathname.slice(1);
  url.pathname = '/postgres';
  await execute(url.href, `drop database ${name} with (force)`);
}
