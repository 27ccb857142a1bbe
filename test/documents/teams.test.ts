/** docs/teams.md does what it says, from an empty folder; and its sections for issuers take tokens of the form that the platforms give. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { openJsonWebTokens } from '../../src/access/tokens/jwt.ts';
import { load } from '../../src/config/load.ts';
import { project } from '../client/documentation.ts';
import { killLeftovers, startCommand } from '../manage/commands.ts';
import { inFolder } from '../support/in_folder.ts';
import { runBlocks, withoutPython } from './blocks.ts';

const document = 'docs/teams.md';

/** The configuration files of the document. */
const files = async (): Promise<readonly string[]> => {
  const markdown = await readFile(path.join(project, document), 'utf8');
  return Array.from(markdown.matchAll(/^```ini\n([\s\S]*?)^```$/gm), ([, text = '']) => text);
};

test('three teams share a pool, by curl, Python and the command', { skip: withoutPython }, async () => {
  await inFolder(async (folder) => {
    const [first = ''] = await files();
    await writeFile(path.join(folder, 'teams.conf'), first.replace('[api]\n', '[api]\nport = 0\n'));
    const printed = await startCommand('placement-manage', ['policy', 'teams'], folder).ended;
    await writeFile(path.join(folder, 'teams.yaml'), printed.stdout);
    try {
      const api = startCommand('placement-api', ['--config-file', 'teams.conf'], folder);
      const [, url = ''] = await api.said(/listens on (\S+)/);
      assert.ok((await runBlocks(document, url, folder)) >= 7);
      api.child.kill('SIGTERM');
      assert.equal((await api.ended).code, 0);
    } finally {
      await killLeftovers();
    }
  });
});

/** By section, claims of tokens of the platform, and the resulting project, user and roles. */
const tokens: Readonly<
  Record<string, readonly [claims: object, project: string, user: string, roles: readonly string[]]>
> = {
  github: [
    {
      iss: 'https://token.actions.githubusercontent.com',
      sub: 'repo:acme/vision:ref:refs/heads/main',
      repository: 'acme/vision',
      repository_owner: 'acme',
      actor: 'ada',
      ref: 'refs/heads/main',
    },
    'acme/vision',
    'ada',
    ['member'],
  ],
  cluster: [
    {
      iss: 'https://kubernetes.default.svc.cluster.local',
      sub: 'system:serviceaccount:vision:jobs',
      'kubernetes.io': {
        namespace: 'vision',
        pod: { name: 'job-1', uid: '00000000-0000-4000-8000-000000000001' },
        serviceaccount: { name: 'jobs', uid: '00000000-0000-4000-8000-000000000002' },
      },
    },
    'vision',
    'jobs',
    ['member'],
  ],
  keycloak: [
    {
      iss: 'https://keycloak.example/realms/pool',
      sub: '00000000-0000-4000-8000-000000000003',
      azp: 'vision',
      preferred_username: 'ada',
      realm_access: { roles: ['offline_access', 'admin', 'member'] },
    },
    'vision',
    'ada',
    ['member'],
  ],
};

test('the sections for issuers take the tokens of their platforms, and no others', async () => {
  await inFolder(async (folder) => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const jwksFile = path.join(folder, 'keys.json');
    await writeFile(
      jwksFile,
      JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', use: 'sig' }] }),
    );
    const configFile = path.join(folder, 'issuers.conf');
    await writeFile(configFile, (await files()).slice(1).join('\n'));
    const { config } = load({ configFiles: [configFile], env: {}, home: folder, cwd: folder });
    const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const signed = (claims: object): string => {
      const now = Math.floor(Date.now() / 1000);
      const payload = { aud: 'placement', iat: now, exp: now + 600, ...claims };
      const text = `${encode({ alg: 'RS256', kid: 'one' })}.${encode(payload)}`;
      return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`;
    };
    assert.deepEqual(Object.keys(config.jwt).toSorted(), Object.keys(tokens).toSorted());
    const sections = Object.entries(config.jwt).map(
      ([name, section]) => [name, { ...section, jwksFile, jwksUri: undefined, cafile: undefined }] as const,
    );
    const judging = openJsonWebTokens(Object.fromEntries(sections), { warn: () => {} });
    try {
      for (const [name, [claims, projectId, userId, roles]] of Object.entries(tokens)) {
        const verdict = await judging.judge(signed(claims));
        assert.ok('identity' in verdict, `${name}: ${JSON.stringify(verdict)}`);
        const { identity } = verdict;
        assert.deepEqual([identity.projectId, identity.userId, identity.roles], [projectId, userId, roles], name);
      }
      const [github] = tokens.github ?? [];
      assert.ok('refused' in (await judging.judge(signed({ ...github, repository_owner: 'other' }))));
    } finally {
      judging.close();
    }
  });
});
