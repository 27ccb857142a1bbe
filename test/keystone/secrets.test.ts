/** Secrets never appear in output or answers of the service. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { type CommandName, runToEnd, startCommand } from '../manage/commands.ts';
import { fillEmbedded } from '../support/templates.ts';
import { type StandIn, settingsFor, withStandIn } from './stand_in.ts';

/** Every secret contains this text, also when it is encoded, so that one search finds them all. */
const mark = 'MARKEDSECRET';
const password = `${mark}-password`;

type Run = { readonly folder: string; readonly standIn: StandIn; readonly printed: string[] };

async function withRun(use: (run: Run) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-secrets-'));
  const printed: string[] = [];
  try {
    await withStandIn((standIn) => use({ folder, standIn, printed }));
    const all = printed.join('\n');
    assert.ok(all.length > 1000, 'there is output to search');
    for (const secret of [
      mark,
      mark.toLowerCase(),
      Buffer.from(mark).toString('base64').slice(0, 14),
      Buffer.from(mark).toString('hex'),
    ]) {
      const at = all.indexOf(secret);
      assert.equal(at, -1, `It was printed: ...${all.slice(Math.max(0, at - 200), at + 50)}...`);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function confFile({ folder, standIn }: Run, lines: string, name = 'placement.conf'): Promise<string> {
  const { username, userDomainName, projectName, projectDomainName } = settingsFor(standIn);
  const file = path.join(folder, name);
  await writeFile(
    file,
    `[DEFAULT]
debug = true
transport_url = rabbit://openstack:${mark}-queue@127.0.0.1:5672//
[api]
port = 0
[keystone_authtoken]
auth_url = ${standIn.url.replace('://', `://placement:${mark}-url@`)}/v3
username = ${username}
password = ${password}
user_domain_name = ${userDomainName}
project_name = ${projectName}
project_domain_name = ${projectDomainName}
http_request_max_retries = 0
memcache_secret_key = ${mark}-memcache
${lines}`,
  );
  return file;
}

for (const useJson of [true, false])
  test(`a run while Keystone works, refuses, has errors and is down, use_json ${useJson}`, async () => {
    await withRun(async (run) => {
      const { folder, standIn, printed } = run;
      standIn.behaviour.password = password;
      await fillEmbedded(path.join(folder, 'data'));
      const embedded = `[placement_database]\nembedded_path = ${folder}/data\nslow_statement_ms = 0\n[DEFAULT]\nuse_json = ${useJson}\n`;
      const config = await confFile(run, embedded);
      const server = startCommand('placement-api', ['--config-file', config], folder);
      const [, url = ''] = await server.said(/listens on (\S+)\n/);

      const admin = standIn.issue({ user: 'alice', roles: ['admin'], project: 'p1' });
      const member = standIn.issue({ user: 'bob', roles: ['member'], project: 'p1' });
      const expired = standIn.issue({ lifetime: -5 });
      const tokens = [admin, member, expired];
      const request = async (path: string, headers: Record<string, string>, method = 'GET', body?: string) => {
        const response = await fetch(url + path, { method, headers, ...(body === undefined ? {} : { body }) });
        printed.push(JSON.stringify([...response.headers]), await response.text());
        return response.status;
      };
      const seen = new Set<number>();
      const round = async (): Promise<void> => {
        for (const token of [...tokens, `${mark}-unknown-token`, '']) {
          for (const path of ['/', '/resource_providers', '/usages?project_id=p1', '/nowhere']) {
            const headers = { 'x-auth-token': token, 'openstack-api-version': 'placement latest' };
            seen.add(await request(path, headers));
            seen.add(
              await request(path, { ...headers, 'x-service-token': `${mark}-service-token`, accept: 'text/html' }),
            );
          }
        }
        const headers = { 'x-auth-token': admin, 'content-type': 'application/json' };
        seen.add(await request('/resource_providers', headers, 'POST', '{"name": 5}'));
        seen.add(await request('/resource_providers', headers, 'POST', 'no JSON'));
      };
      await round();
      await sendSecrets(url, admin);
      standIn.behaviour.broken = { status: 500, text: `the password is ${password}` };
      tokens.push(standIn.issue());
      await round();
      standIn.behaviour.broken = { status: 200, text: `{"token": "${password}"}` };
      await round();
      standIn.behaviour.broken = undefined;
      standIn.behaviour.password = 'another one';
      standIn.revokeOwn();
      tokens.push(standIn.issue());
      await round();
      await standIn.down();
      tokens.push(standIn.issue());
      await round();
      assert.deepEqual([...seen].toSorted(), [200, 400, 401, 403, 404, 503]);

      server.child.kill('SIGTERM');
      const { code, stdout, stderr } = await server.ended;
      assert.equal(code, 0);
      printed.push(stdout, stderr);
      assert.match(stderr, /does not accept the service user/);
      assert.match(stderr, /cannot be reached/);
      // Tokens are secrets, too.
      for (const token of tokens) assert.ok(!printed.join('\n').includes(token), 'no token is printed');
    });
  });

/**
 * Sends secrets at places where a client may put them by mistake, and at their correct places. The answers go to the
 * same client, so they are not checked. The caller checks the log.
 */
async function sendSecrets(url: string, token: string): Promise<void> {
  const headers = {
    'x-auth-token': token,
    'openstack-api-version': 'placement 1.39',
    'content-type': 'application/json',
    authorization: `Bearer ${mark}-bearer`,
    'proxy-authorization': `Basic ${btoa(mark)}`,
    cookie: `session=${mark}-cookie`,
    'x-subject-token': `${mark}-subject`,
    'x-openstack-request-id': `req-${mark}`,
    'user-agent': mark,
    referer: `http://elsewhere/?password=${mark}`,
  };
  const send = async (method: string, path: string, body: string, more = {}) => {
    const answer = await fetch(url + path, { method, headers: { ...headers, ...more }, body });
    await answer.text();
    return answer.status;
  };
  const name = `${mark}-name`;
  const statuses = [
    await send('POST', '/resource_providers', JSON.stringify({ name, uuid: '8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11' })),
    await send('POST', '/resource_providers', JSON.stringify({ name })),
    await send('DELETE', '/resource_providers/8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11', ''),
    await send('POST', '/resource_providers', `{"password": "${mark}"}`),
    await send('POST', '/resource_providers', `${mark} is no JSON`),
    await send('POST', '/resource_providers', mark.repeat(900_000)),
    await send('POST', '/resource_providers', '{}', { 'content-type': `text/${mark}` }),
    await send('POST', '/resource_providers', '{}', { 'openstack-api-version': `placement ${mark}` }),
    await send('POST', '/resource_providers', '{}', { accept: `text/${mark}` }),
  ];
  assert.deepEqual(statuses, [200, 409, 204, 400, 400, 413, 415, 400, 400]);
  for (const raw of [
    `GET / HTTP/1.1\r\nX-Auth-Token : ${mark}-unparsed\r\n\r\n`,
    `POST /resource_providers HTTP/1.1\r\nHost: a\r\nX-Auth-Token: ${token}\r\nContent-Length: 100\r\n\r\n${mark}`,
  ]) {
    await new Promise<void>((resolve) => {
      const socket = net.connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
      socket.once('close', () => resolve());
      socket.end(raw);
      socket.resume();
    });
  }
}

test('the output of commands about the configuration and about mistakes in it', async () => {
  await withRun(async (run) => {
    const { folder, printed } = run;
    const database = `postgresql://placement:${mark}-database@127.0.0.1:1/placement`;
    const good = await confFile(
      run,
      `[placement_database]\nconnection = ${database}\nslave_connection = ${database}\nmax_retries = 0\n`,
    );
    const wrong = await confFile(
      run,
      `auth_type = ${'$'}password\n[placement_database]\nconnection = mysql+pymysql://placement:${mark}@h/d\n`,
      'wrong.conf',
    );
    const unparsed = await confFile(run, `this is ${mark} without a separator\n`, 'unparsed.conf');
    const missing = await confFile(run, 'cafile = /nowhere/ca.pem\n', 'missing.conf');
    const environment = { OS_KEYSTONE_AUTHTOKEN__PASSWORD: `${mark}-environment` };
    const runs: readonly (readonly [config: string, command: CommandName, ...args: string[]])[] = [
      [good, 'placement-api', '--show-config'],
      [good, 'placement-api'],
      [good, 'placement-manage', 'db', 'sync'],
      [good, 'placement-status', 'upgrade', 'check'],
      [wrong, 'placement-api'],
      [wrong, 'placement-manage', 'policy', 'list'],
      [unparsed, 'placement-api'],
      [missing, 'placement-api'],
    ];
    for (const [config, command, ...args] of runs) {
      const { code, stdout, stderr } = await runToEnd(command, ['--config-file', config, ...args], folder, environment);
      printed.push(`${command} ${args.join(' ')}: ${code}`, stdout, stderr);
    }
    assert.match(printed.join('\n'), /password = \*\*\*/);
    assert.match(printed.join('\n'), /postgresql:\/\/placement:\*\*\*@127\.0\.0\.1:1\/placement/);
  });
});
