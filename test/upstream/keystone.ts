import { execFile } from 'node:child_process';
import { chown, mkdtemp, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../support/free_port.ts';
import { startKept, unprivilegedOwner } from '../support/kept_process.ts';

/** Keystone itself, as Debian packages it, on a database. */
export type RealKeystone = {
  /** For `[keystone_authtoken] auth_url`. */
  readonly url: string;
  /**
   * Calls its API as the administrator, with a token of the system scope.
   *
   * @param path below `/v3`
   * @throws Error where the answer is no success
   */
  call(method: string, path: string, body?: unknown): Promise<unknown>;
  stop(): Promise<void>;
};

const password = 'bootstrap';

/** Keystone would take the arguments of gunicorn for its own. */
const application = `import sys

sys.argv = ['keystone']
from keystone.server import wsgi

application = wsgi.initialize_public_application()
`;

/**
 * Sets up Keystone in an empty database, with the region RegionOne and the administrator `admin`, and serves it under gunicorn on a free
 * port of 127.0.0.1, until this process ends.
 *
 * @throws Error with the log if it does not start
 */
export async function startKeystone(databaseUrl: string): Promise<RealKeystone> {
  const owner = await unprivilegedOwner();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'keystone-'));
  if (owner !== undefined) await chown(folder, owner.uid, owner.gid);
  const file = path.join(folder, 'keystone.conf');
  const connection = databaseUrl.replace(/^postgresql:/, 'postgresql+psycopg2:');
  await writeFile(
    file,
    `[database]
connection = ${connection}
[token]
provider = fernet
[fernet_tokens]
key_repository = ${folder}/keys
[fernet_receipts]
key_repository = ${folder}/keys
[identity]
password_hash_rounds = 4
[cache]
enabled = false
`,
  );
  await writeFile(path.join(folder, 'keystone_app.py'), application);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const env = { PATH: process.env.PATH, HOME: folder };
  const manage = (...args: readonly string[]) =>
    promisify(execFile)('/usr/bin/keystone-manage', ['--config-file', file, ...args], { ...owner, cwd: folder, env });
  await manage('db_sync');
  await manage('fernet_setup');
  const addresses = ['public', 'internal', 'admin'].flatMap((kind) => [`--bootstrap-${kind}-url`, `${url}/v3`]);
  await manage('bootstrap', '--bootstrap-password', password, '--bootstrap-region-id', 'RegionOne', ...addresses);

  const command = ['gunicorn', '--bind', `127.0.0.1:${port}`, '--threads', '8', '--timeout', '300'] as const;
  const server = startKept(folder, [...command, 'keystone_app:application'], {
    signal: 'TERM',
    ...(owner === undefined ? {} : { owner }),
    env: { ...env, OS_KEYSTONE_CONFIG_DIR: folder, OS_KEYSTONE_CONFIG_FILES: 'keystone.conf' },
  });
  const isThere = await server.answers(() => fetch(`${url}/v3`));
  if (!isThere) {
    const log = await server.log();
    await server.stop();
    throw new Error(`Keystone did not start. Its log says:\n${log}`);
  }

  const send = (method: string, at: string, body: unknown, token?: string) =>
    fetch(`${url}/v3${at}`, {
      method,
      headers: { 'content-type': 'application/json', ...(token === undefined ? {} : { 'x-auth-token': token }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const user = { name: 'admin', domain: { id: 'default' }, password };
  const identity = { methods: ['password'], password: { user } };
  const signedIn = await send('POST', '/auth/tokens', { auth: { identity, scope: { system: { all: true } } } });
  const token = signedIn.headers.get('x-subject-token') ?? '';
  return {
    url,
    call: async (method, at, body) => {
      const answer = await send(method, at, body, token);
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${method} ${at}: ${answer.status} ${text}`);
      return text === '' ? undefined : JSON.parse(text);
    },
    stop: () => server.stop(),
  };
}
