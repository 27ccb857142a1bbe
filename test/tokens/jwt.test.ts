/** JSON Web Tokens: made by Python and openssl, wrong in every way, and by issuers that rotate keys or are unavailable. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, suite, test } from 'node:test';
import { jwtProblems } from '../../src/access/tokens/issuers.ts';
import { openJsonWebTokens } from '../../src/access/tokens/jwt.ts';
import type { TokenVerdict } from '../../src/access/tokens/own_tokens.ts';
import type { JwtConfig } from '../../src/config/config.ts';
import { hasPrograms } from '../support/debian_packages.ts';
import { anyEngine } from '../support/engines.ts';
import { withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';

const issuer = 'https://issuer.example';
const settings: JwtConfig = {
  issuer,
  audience: ['placement'],
  jwksUri: undefined,
  jwksFile: undefined,
  cafile: undefined,
  require: [],
  userClaim: 'sub',
  projectClaim: 'project',
  projects: ['*'],
  roles: ['member'],
  rolesClaim: undefined,
  acceptRoles: ['member', 'reader'],
};

const folder = mkdtempSync(path.join(os.tmpdir(), 'placement-jwt-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
const nowSeconds = Math.floor(Date.now() / 1000);
const claims = { iss: issuer, aud: 'placement', exp: nowSeconds + 7200, sub: 'ada', project: 'ci' };
const jwksOf = (...keys: readonly { readonly key: KeyObject; readonly kid: string }[]) => ({
  keys: keys.map(({ key, kid }) => ({ ...key.export({ format: 'jwk' }), kid, use: 'sig' })),
});
const jwksFile = path.join(folder, 'keys.json');
writeFileSync(jwksFile, JSON.stringify(jwksOf({ key: pair.publicKey, kid: 'one' })));

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const signed = (payload: object, header: object = {}, key: KeyObject = pair.privateKey): string => {
  const text = `${encode({ alg: 'RS256', kid: 'one', ...header })}.${encode(payload)}`;
  return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`;
};

const log = { warn: () => {} };
const judgedBy = async (token: string, more: Partial<JwtConfig> = {}): Promise<TokenVerdict> => {
  const tokens = openJsonWebTokens({ test: { ...settings, jwksFile, ...more } }, log);
  try {
    return await tokens.judge(token);
  } finally {
    tokens.close();
  }
};
const identityIn = (judged: TokenVerdict) => ('identity' in judged ? judged.identity : assert.fail(judged.refused));
const reasonIn = (judged: TokenVerdict): string => ('refused' in judged ? judged.refused : assert.fail('it was taken'));

suite('a token by its claims', () => {
  test('gives user, project and roles', async () => {
    const { userId, projectId, roles, expiresAtMs } = identityIn(await judgedBy(signed(claims)));
    assert.deepEqual([userId, projectId, roles, expiresAtMs], ['ada', 'ci', ['member'], (nowSeconds + 7230) * 1000]);
    const nested = { ...claims, realm: { roles: ['admin', 'reader', 'x'] }, 'a~1/b': { user: 7 } };
    const more = { rolesClaim: '/realm/roles', userClaim: '/a~01~1b/user' };
    const identity = identityIn(await judgedBy(signed(nested), more));
    assert.deepEqual([identity.userId, identity.roles], ['7', ['member', 'reader']]);
    const spaced = identityIn(await judgedBy(signed({ ...claims, scope: 'reader admin' }), { rolesClaim: 'scope' }));
    assert.deepEqual(spaced.roles, ['member', 'reader']);
  });

  for (const [what, payload, more, reason] of [
    ['another issuer', { ...claims, iss: 'https://other.example' }, {}, 'issuer'],
    ['no issuer', { ...claims, iss: undefined }, {}, 'issuer'],
    ['another audience', { ...claims, aud: 'other' }, {}, '"aud"'],
    ['no audience', { ...claims, aud: undefined }, {}, '"aud"'],
    ['a time that is over', { ...claims, exp: nowSeconds - 60 }, {}, '"exp"'],
    ['no end', { ...claims, exp: undefined }, {}, '"exp"'],
    ['a time that has not begun', { ...claims, nbf: nowSeconds + 3600 }, {}, '"nbf"'],
    ['a time of making in the future', { ...claims, iat: nowSeconds + 3600 }, {}, '"iat"'],
    ['no user', { ...claims, sub: undefined }, {}, 'user'],
    ['no project', { ...claims, project: '' }, {}, 'project'],
    ['a project that is a list', { ...claims, project: ['ci'] }, {}, 'project'],
    ['a project that fits no pattern', claims, { projects: ['ci-*', 'ml'] }, 'none of ci-*, ml'],
    [
      'a project that only ends as a pattern',
      { ...claims, project: 'x-ci-1' },
      { projects: ['ci-*', 'ci'] },
      'none of',
    ],
    [
      'a project that only begins as a pattern',
      { ...claims, project: 'a-ci-x' },
      { projects: ['*-ci', 'a'] },
      'none of',
    ],
    ['another letter for a point of a pattern', { ...claims, project: 'ci-linux' }, { projects: ['ci.*'] }, 'none of'],
    ['a long user', { ...claims, sub: 'x'.repeat(256) }, {}, '255'],
    ['a long project', { ...claims, project: 'x'.repeat(256) }, {}, '255'],
    ['a NUL in the user', { ...claims, sub: 'a\0b' }, {}, 'NUL'],
    ['half of a character in the project', { ...claims, project: 'a\ud800' }, {}, 'lone surrogate'],
    ['a required claim that is missing', claims, { require: ['/owner=acme'] }, '/owner'],
    [
      'one of two required claims with another value',
      { ...claims, owner: 'acme', ref: 'x' },
      { require: ['/owner=acme', '/ref=main'] },
      '/ref',
    ],
    [
      'a required claim with another value',
      { ...claims, owner: 'x' },
      { require: ['/owner=acme', '/owner=b'] },
      'acme or b',
    ],
  ] as const) {
    test(`is refused with ${what}`, async () => {
      assert.ok(
        reasonIn(await judgedBy(signed(payload), more)).includes(reason),
        reasonIn(await judgedBy(signed(payload), more)),
      );
    });
  }

  test('is taken within the leeway of the clocks, and with one of several audiences and values', async () => {
    const presentSeconds = Math.floor(Date.now() / 1000);
    const slow = {
      ...claims,
      exp: presentSeconds - 10,
      nbf: presentSeconds + 10,
      iat: presentSeconds + 10,
      aud: ['x', 'placement'],
    };
    const { expiresAtMs = 0 } = identityIn(await judgedBy(signed(slow)));
    assert.ok(
      expiresAtMs > Date.now(),
      'or a client that waits for changes gets an empty answer at once, again and again',
    );
    const required = { require: ['/owner=acme', '/owner=other', '/ref=main'] };
    identityIn(await judgedBy(signed({ ...claims, owner: ['x', 'other'], ref: 'main' }), required));
    identityIn(await judgedBy(signed({ ...claims, project: 'ci-linux' }), { projects: ['ml', 'ci-*'] }));
  });
});

test('a token that was verified is taken for 30 s, and refused after its end and the leeway of the clocks', async (t) => {
  const tokens = openJsonWebTokens({ test: { ...settings, jwksFile } }, log);
  const verifiedMs = performance.now();
  let nowMs = verifiedMs;
  t.mock.method(performance, 'now', () => nowMs);
  t.mock.timers.enable({ apis: ['Date'], now: nowSeconds * 1000 });
  const token = signed(claims);
  identityIn(await tokens.judge(token));
  nowMs = verifiedMs + 29_999;
  t.mock.timers.setTime((claims.exp + 29) * 1000);
  const known = tokens.judge(token);
  assert.ok(!(known instanceof Promise), 'it is not verified again');
  identityIn(known);
  t.mock.timers.setTime((claims.exp + 30) * 1000);
  assert.match(reasonIn(await tokens.judge(token)), /"exp"/);
  t.mock.timers.setTime(nowSeconds * 1000);
  nowMs = verifiedMs + 30_000;
  const verifiedAgain = tokens.judge(token);
  assert.ok(verifiedAgain instanceof Promise);
  identityIn(await verifiedAgain);
  tokens.close();
});

suite('a token by its signature', () => {
  const weak = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const weakFile = path.join(folder, 'weak.json');
  writeFileSync(weakFile, JSON.stringify(jwksOf({ key: weak.publicKey, kid: 'one' })));
  const publicPem = pair.publicKey.export({ type: 'spki', format: 'pem' });
  const bySecret = (secret: string | Buffer): string => {
    const text = `${encode({ alg: 'HS256', kid: 'one' })}.${encode(claims)}`;
    return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
  };
  const { publicKey: other, privateKey: otherKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

  for (const [what, token, more] of [
    ['alg none', `${encode({ alg: 'none' })}.${encode(claims)}.`, {}],
    ['HS256 by the public key', bySecret(publicPem), {}],
    ['another key', signed(claims, {}, otherKey), {}],
    ['a short RSA key', signed(claims, {}, weak.privateKey), { jwksFile: weakFile }],
    ['another payload', signed(claims).replace(/\.[^.]*\./, `.${encode({ ...claims, sub: 'eve' })}.`), {}],
    ['an unknown key id', signed(claims, { kid: 'two' }), {}],
    ['its key in the header', signed(claims, { jwk: other.export({ format: 'jwk' }) }, otherKey), {}],
    ['the address of its key', signed(claims, { jku: 'https://evil.example/keys' }), {}],
    ['the address of a certificate', signed(claims, { x5u: 'https://evil.example/x5u' }), {}],
    ['a critical header', signed(claims, { crit: ['b64'], b64: true }), {}],
    ['more than 8 KiB', signed({ ...claims, more: 'x'.repeat(8192) }), {}],
    ['no JSON', 'a.b.c', {}],
    ['nothing', '..', {}],
  ] as const) {
    test(`is refused with ${what}`, async () => {
      assert.ok(reasonIn(await judgedBy(token, more)).length > 5);
    });
  }

  test('is refused where the key that it names is none, also in the service', async () => {
    const { n } = pair.publicKey.export({ format: 'jwk' });
    const broken = { kty: 'RSA', kid: 'broken' };
    const keys = [
      ...jwksOf({ key: pair.publicKey, kid: 'one' }).keys,
      { ...broken, e: 'AQAB' },
      { ...broken, kid: 'half private', n, e: 'AQAB', d: 'AQAB' },
      { kty: 'EC', kid: 'off the curve', crv: 'P-256', x: 'AA', y: 'AA' },
      { kty: 'OKP', kid: 'short', crv: 'Ed25519', x: 'AA' },
    ];
    const file = path.join(folder, 'broken.json');
    writeFileSync(file, JSON.stringify({ keys }));
    const jwt = { test: { ...settings, jwksFile: file } };
    await withTestService(anyEngine, { api: { authStrategy: 'tokens' }, jwt }, async ({ app }) => {
      for (const [kid, alg, status] of [
        ['broken', 'RS256', 401],
        ['half private', 'RS256', 401],
        ['off the curve', 'ES256', 401],
        ['short', 'EdDSA', 401],
        ['one', 'RS256', 403],
      ] as const) {
        const headers = { authorization: `Bearer ${signed(claims, { kid, alg })}` };
        assert.equal((await app.request('/resource_providers', { headers })).status, status, kid);
      }
    });
  });

  test('by elliptic curves is taken', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const file = path.join(folder, 'ed25519.json');
    writeFileSync(file, JSON.stringify(jwksOf({ key: publicKey, kid: 'one' })));
    const text = `${encode({ alg: 'EdDSA', kid: 'one' })}.${encode(claims)}`;
    const token = `${text}.${sign(null, Buffer.from(text), privateKey).toString('base64url')}`;
    identityIn(await judgedBy(token, { jwksFile: file }));
  });
});

suite('tokens made by other programs', () => {
  const privateFile = path.join(folder, 'private.pem');
  writeFileSync(privateFile, pair.privateKey.export({ type: 'pkcs8', format: 'pem' }));

  test('by PyJWT', (t) => {
    const runs = () => {
      try {
        execFileSync('/usr/bin/python3', ['-c', 'import jwt, cryptography'], { stdio: 'ignore' });
        return true;
      } catch {
        return false;
      }
    };
    if (!hasPrograms(runs, ['python3-jwt', 'python3-cryptography'])) return t.skip('python3-jwt is not there');
    const script = `import jwt, sys, json
print(jwt.encode(json.loads(sys.argv[1]), open(sys.argv[2]).read(), algorithm=sys.argv[3], headers={'kid': 'one'}))`;
    const made = (algorithm: string): string =>
      execFileSync('/usr/bin/python3', ['-c', script, JSON.stringify(claims), privateFile, algorithm], {
        encoding: 'utf8',
      }).trim();
    return Promise.all(
      ['RS256', 'RS512', 'PS256'].map(async (algorithm) => {
        assert.equal(identityIn(await judgedBy(made(algorithm))).userId, 'ada');
      }),
    ).then(() => {});
  });

  test('by openssl', async () => {
    const text = `${encode({ alg: 'RS256', kid: 'one' })}.${encode(claims)}`;
    const signature = execFileSync('openssl', ['dgst', '-sha256', '-sign', privateFile], { input: text });
    assert.equal(identityIn(await judgedBy(`${text}.${signature.toString('base64url')}`)).projectId, 'ci');
  });
});

suite('the keys of an issuer', () => {
  /** An issuer whose answers a test chooses. */
  async function withIssuer(
    use: (issuerOf: {
      readonly url: string;
      answers: Record<string, string | number>;
      requests: string[];
    }) => Promise<void>,
  ): Promise<void> {
    const served = { url: '', answers: {} as Record<string, string | number>, requests: [] as string[] };
    const server = http.createServer((request, response) => {
      served.requests.push(request.url ?? '');
      const answer = served.answers[request.url ?? ''] ?? 404;
      if (typeof answer === 'number') response.writeHead(answer, { location: '/keys' }).end(keysOfOne);
      else response.end(answer);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    served.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on TCP
    try {
      await use(served);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }
  const keysOfOne = JSON.stringify(jwksOf({ key: pair.publicKey, kid: 'one' }));
  const warnings: string[] = [];
  const noting = { warn: (line: string) => void warnings.push(line) };

  test('keys are found by discovery, and fetched again when a key is unknown, at most once in 30 s', async () => {
    await withIssuer(async (served) => {
      const own = { ...claims, iss: served.url };
      const discovered = { issuer: served.url, jwks_uri: `${served.url}/keys` };
      served.answers = {
        '/.well-known/openid-configuration': JSON.stringify(discovered),
        '/keys': keysOfOne,
      };
      const tokens = openJsonWebTokens({ test: { ...settings, issuer: served.url } }, noting);
      identityIn(await tokens.judge(signed(own)));
      const rotated = generateKeyPairSync('rsa', { modulusLength: 2048 });
      served.answers['/keys'] = JSON.stringify(jwksOf({ key: rotated.publicKey, kid: 'two' }));
      const byNew = signed(own, { kid: 'two' }, rotated.privateKey);
      const requests = served.requests.length;
      reasonIn(await tokens.judge(byNew));
      for (let count = 0; count < 20; count += 1) reasonIn(await tokens.judge(signed(own, { kid: `x${count}` })));
      assert.equal(served.requests.length, requests);
      tokens.close();
      const later = openJsonWebTokens({ test: { ...settings, issuer: served.url } }, noting);
      identityIn(await later.judge(byNew));
      reasonIn(await later.judge(signed(own)));
      later.close();
    });
  });

  test('keys are not taken from a redirect, a long answer, another discovery, or an invalid key set', async () => {
    await withIssuer(async (served) => {
      const wellKnown = '/.well-known/openid-configuration';
      for (const answers of [
        { '/jwks': 302, '/keys': keysOfOne },
        { '/jwks': 500 },
        { '/jwks': `{"keys":[],"x":"${'x'.repeat(1024 * 1024)}"}` },
        { '/jwks': '{}' },
        { '/jwks': 'text' },
        {
          [wellKnown]: JSON.stringify({ issuer: 'https://other.example', jwks_uri: `${served.url}/keys` }),
          '/keys': keysOfOne,
        },
        { [wellKnown]: '{}' },
        {},
      ]) {
        warnings.length = 0;
        served.answers = answers;
        const more = '/jwks' in answers ? { jwksUri: `${served.url}/jwks` } : {};
        const tokens = openJsonWebTokens({ test: { ...settings, issuer: served.url, ...more } }, noting);
        await assert.rejects(async () => tokens.judge(signed({ ...claims, iss: served.url })), { status: 503 });
        tokens.close();
        assert.match(warnings.join(), /The keys of \[jwt:test\] could not be fetched/);
      }
    });
  });

  test('that could not be fetched make a 503 in the service, and those that are there are used while the issuer is unavailable', async () => {
    await withIssuer(async (served) => {
      served.answers = { '/keys': keysOfOne };
      const jwt = {
        here: { ...settings, issuer: 'https://here.example', jwksUri: `${served.url}/keys` },
        away: { ...settings, issuer: 'https://away.example', jwksUri: 'http://127.0.0.1:1/keys' },
      };
      await withTestService(anyEngine, { api: { authStrategy: 'tokens' }, jwt }, async ({ app }) => {
        const ask = async (iss: string, more: object = {}) => {
          const headers = {
            authorization: `Bearer ${signed({ ...claims, iss, ...more })}`,
            'openstack-api-version': 'placement 1.38',
          };
          return app.request('/usages?project_id=ci', { headers });
        };
        const statusOf = async (iss: string, more: object = {}) => (await ask(iss, more)).status;
        const away = await ask('https://away.example');
        const seconds = Number(away.headers.get('retry-after'));
        assert.ok(away.status === 503 && seconds >= 1 && seconds <= 30, `${away.status} ${seconds}`);
        assert.equal(away.headers.get('www-authenticate'), null);
        assert.match(await away.text(), /keys of its issuer could not be fetched/);
        await until('the keys are there', async () => (await statusOf('https://here.example')) === 403);
        served.answers = { '/keys': 500 };
        assert.equal(await statusOf('https://here.example', { sub: 'bob' }), 403);
      });
    });
  });
});

test('settings by which tokens of other organisations, or no tokens, would count are reported', () => {
  const problemsOf = (more: Partial<JwtConfig>) => jwtProblems({ x: { ...settings, ...more } }).join('\n');
  assert.equal(problemsOf({}), '');
  for (const [more, says] of [
    [{ issuer: undefined }, 'issuer is missing'],
    [{ issuer: 'kubernetes/serviceaccount' }, 'jwks_uri or jwks_file'],
    [{ jwksUri: 'keys.json' }, 'no URL'],
    [{ audience: [] }, 'audience is missing'],
    [{ projectClaim: undefined }, 'project_claim is missing'],
    [{ roles: [] }, 'no role'],
    [{ rolesClaim: 'roles', acceptRoles: [] }, 'accept_roles'],
    [{ issuer: 'https://token.actions.githubusercontent.com' }, 'for any user'],
    [{ issuer: 'https://gitlab.com' }, 'for any user'],
    [{ issuer: 'https://accounts.google.com' }, 'for any user'],
    [{ require: ['owner=acme'] }, 'JSON pointer'],
    [{ require: ['/owner'] }, 'JSON pointer'],
  ] as const) {
    assert.ok(problemsOf(more).includes(says), `${JSON.stringify(more)}: ${problemsOf(more)}`);
    assert.ok(problemsOf(more).startsWith('[jwt:x]: '));
  }
  assert.match(jwtProblems({ a: settings, b: settings }).join('\n'), /another section/);
});
