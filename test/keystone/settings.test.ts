/** The connection to Keystone: the required settings, the address, and TLS. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { openKeystone } from '../../src/access/keystone/authenticate.ts';
import {
  identityUrl,
  type KeystoneSettings,
  keystoneProblems,
  keystoneTimeBudgetMs,
  publicAddress,
  tlsOptions,
} from '../../src/access/keystone/settings.ts';
import { selfSigned } from './certificate.ts';
import { completeSettings, userOf } from './keystones.ts';
import { settingsFor, withStandIn } from './stand_in.ts';

const complete = settingsFor({ url: 'http://keystone:5000' });

test('every missing setting is reported', () => {
  const problems = (more: Partial<KeystoneSettings>) =>
    keystoneProblems(completeSettings(more)).map((problem) => problem.replace('[keystone_authtoken] ', ''));
  assert.deepEqual(problems({}), [
    'auth_url is not set.',
    'username or user_id is not set.',
    'password is not set.',
    'project_name or project_id is not set.',
  ]);
  assert.deepEqual(problems(complete), []);
  assert.deepEqual(problems({ ...complete, userDomainName: undefined, projectDomainName: undefined }), [
    'user_domain_name or user_domain_id is not set.',
    'project_domain_name or project_domain_id is not set.',
  ]);
  const bare = { authUrl: 'https://k', password: 'p' };
  assert.deepEqual(problems({ ...bare, username: 'u', projectName: 'p', defaultDomainId: 'default' }), []);
  assert.deepEqual(problems({ ...bare, userId: 'u', projectId: 'p' }), []);
  assert.deepEqual(problems({ ...bare, userId: 'u', systemScope: 'all' }), []);
  for (const authUrl of ['keystone:5000', 'ftp://keystone', 'http://']) {
    assert.match(problems({ ...complete, authUrl }).join(), /^auth_url must be a URL/);
  }
});

test('auth_url may have a version, a path and a slash at the end', () => {
  for (const [authUrl, expected] of [
    ['http://k:5000', 'http://k:5000/v3'],
    ['http://k:5000/', 'http://k:5000/v3'],
    ['http://k:5000/v3', 'http://k:5000/v3'],
    ['http://k:5000/v3/', 'http://k:5000/v3'],
    ['http://k:5000/v2.0', 'http://k:5000/v3'],
    ['https://k/identity', 'https://k/identity/v3'],
    ['https://k/identity/v3/', 'https://k/identity/v3'],
  ] as const) {
    assert.equal(identityUrl(authUrl), expected);
  }
  for (const user of ['u:p@', 'u@', ':p@', '']) {
    assert.equal(
      publicAddress(completeSettings({ wwwAuthenticateUri: `http://${user}k:5000/v3` })),
      'http://k:5000/v3',
    );
  }
});

test('a request waits for Keystone for ten seconds, or for one attempt if that may take longer', () => {
  const budgets = [undefined, 0, 5, 30].map((httpConnectTimeout) => keystoneTimeBudgetMs({ httpConnectTimeout }));
  assert.deepEqual(budgets, [10_000, 10_000, 10_000, 30_000]);
});

test('a certificate must be signed by a trusted authority, unless insecure is set', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-keystone-'));
  const tls = selfSigned();
  const cafile = path.join(folder, 'ca.pem');
  const foreign = path.join(folder, 'foreign.pem');
  await writeFile(cafile, tls.cert);
  await writeFile(foreign, selfSigned().cert);
  try {
    await withStandIn(async (standIn) => {
      const cases: readonly (readonly [more: Partial<KeystoneSettings>, outcome: string, log: RegExp])[] = [
        [{ cafile }, 'alice', /^$/],
        [{ insecure: true }, 'alice', /^With \[keystone_authtoken\] insecure = true/],
        [{}, 'Keystone is unavailable', /self-signed certificate/],
        [{ cafile: foreign }, 'Keystone is unavailable', /self-signed certificate/],
      ];
      for (const [more, expected, log] of cases) {
        const logged: string[] = [];
        const say = (...entry: readonly unknown[]) => void logged.push(String(entry.at(-1)));
        const settings = completeSettings({ ...settingsFor(standIn), ...more });
        const keystone = openKeystone(settings, { info: say, warn: say });
        const headers = new Headers({ 'x-auth-token': standIn.issue({ user: 'alice' }) });
        assert.equal(userOf(await keystone.authenticate(headers, { method: 'GET', path: '/' })), expected);
        assert.match(logged.join(), log);
        keystone.close();
      }
    }, tls);
    const both = path.join(folder, 'both.pem');
    await writeFile(both, tls.cert + tls.key);
    assert.equal(tlsOptions(completeSettings({ ...complete, certfile: both })).key, tls.cert + tls.key);
    const missing = completeSettings({ ...complete, cafile: path.join(folder, 'none.pem') });
    const silent = { info: () => {}, warn: () => {} };
    assert.throws(() => openKeystone(missing, silent), /\[keystone_authtoken\] cafile cannot be read: ENOENT/);
  } finally {
    await rm(folder, { recursive: true });
  }
});
