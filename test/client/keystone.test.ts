import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ApiError, AuthError, type Credentials, connect, keystone, type Scope } from '../../src/client/index.ts';
import { type KeystoneData, type KeystoneServer, startKeystone } from './keystone_server.ts';
import { forward, startFront, startServer, type TestServer } from './servers.ts';

let server: TestServer;

before(async () => {
  server = await startServer();
});
after(() => server.close());

const password: Credentials = { method: 'password', user: { name: 'nova', domainName: 'Default' }, password: 'secret' };
const project: Scope = { project: { name: 'service', domainId: 'default' } };

async function withKeystone(data: Partial<KeystoneData>, use: (keystone: KeystoneServer) => Promise<void>) {
  const running = await startKeystone({ placementUrl: server.url, ...data });
  try {
    await use(running);
  } finally {
    await running.close();
  }
}

test('an empty token is refused before anything is sent', () => {
  const says = { name: 'TypeError', message: /^The token is empty\. Give the user for a service without Keystone/ };
  assert.throws(() => connect({ endpoint: server.url, auth: '' }), says);
});

test('a password gets a token and the endpoint, once for many calls', () =>
  withKeystone({}, async ({ url, logins }) => {
    const auth = keystone({ authUrl: `${url}/v3/`, credentials: password, scope: project, region: 'RegionOne' });
    const placement = connect({ auth });
    await Promise.all([placement.providers.list(), placement.traits.list(), placement.resourceClasses.list()]);
    assert.deepEqual(logins, [
      {
        auth: {
          identity: {
            methods: ['password'],
            password: { user: { name: 'nova', domain: { name: 'Default' }, password: 'secret' } },
          },
          scope: { project: { name: 'service', domain: { id: 'default' } } },
        },
      },
    ]);
  }));

test('a token and an application credential can log in too, and the scope can be a domain or the system', () =>
  withKeystone({}, async ({ url: authUrl, logins }) => {
    const login = (credentials: Credentials, scope?: Scope) =>
      connect({ endpoint: server.url, auth: keystone({ authUrl, credentials, scope }) }).providers.list();
    await login({ method: 'token', token: 'unscoped' }, { system: 'all' });
    await login({ method: 'application credential', id: 'id', secret: 'secret' });
    await login({ method: 'password', user: { id: 'nova' }, password: 'secret' }, { domain: { name: 'Default' } });
    assert.deepEqual(logins, [
      { auth: { identity: { methods: ['token'], token: { id: 'unscoped' } }, scope: { system: { all: true } } } },
      {
        auth: {
          identity: { methods: ['application_credential'], application_credential: { id: 'id', secret: 'secret' } },
        },
      },
      {
        auth: {
          identity: { methods: ['password'], password: { user: { id: 'nova', password: 'secret' } } },
          scope: { domain: { name: 'Default' } },
        },
      },
    ]);
  }));

test('a token that is about to expire is renewed before it is used', () =>
  withKeystone({ validMs: 30_000 }, async ({ url: authUrl, logins }) => {
    const auth = keystone({ authUrl, credentials: password, scope: project });
    const placement = connect({ endpoint: server.url, auth });
    await placement.providers.list();
    const before = logins.length;
    await placement.providers.list();
    assert.ok(logins.length > before);
  }));

test('calls that find the token expired at the same time share one login', (t) =>
  withKeystone({ validMs: 63_000 }, async ({ url: authUrl, logins }) => {
    const auth = keystone({ authUrl, credentials: password, scope: project });
    const placement = connect({ endpoint: server.url, auth });
    await placement.providers.list();
    const before = logins.length;
    // In the last minute of its life a token is renewed.
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 3_100 });
    await Promise.all([placement.providers.list(), placement.traits.list(), placement.resourceClasses.list()]);
    assert.equal(logins.length, before + 1);
  }));

test('a token that the service refuses is replaced once, for all calls that have it', () =>
  withKeystone({ tokens: ['stale', 'admin'] }, async ({ url: authUrl, logins }) => {
    // The service without Keystone takes any token; this front refuses one, as Keystone's middleware does.
    const front = await startFront((incoming, response) => {
      if (incoming.headers['x-auth-token'] === 'admin') forward(server.url, incoming, response);
      else
        response.writeHead(401, { 'Content-Type': 'application/json' }).end('{"message": "The token is not valid."}');
    });
    try {
      const auth = keystone({ authUrl, credentials: password, scope: project });
      const placement = connect({ endpoint: front.url, auth });
      await Promise.all(Array.from({ length: 20 }, () => placement.providers.list()));
      assert.equal(logins.length, 2);
      const stranger = connect({ endpoint: front.url, auth: 'stale' });
      await assert.rejects(stranger.providers.list(), (error) => {
        assert.ok(error instanceof ApiError && error.status === 401);
        return error.detail === 'The token is not valid.';
      });
    } finally {
      await front.close();
    }
  }));

test('errors of Keystone say what to do', () =>
  withKeystone({}, async ({ url: authUrl }) => {
    const failing = (options: Partial<Parameters<typeof keystone>[0]>) =>
      connect({ auth: keystone({ authUrl, credentials: password, scope: project, ...options }) }).providers.list();
    const says = (message: RegExp) => (error: unknown) => {
      assert.ok(error instanceof AuthError, String(error));
      assert.match(error.message, message);
      return true;
    };
    await assert.rejects(
      failing({ credentials: { ...password, password: 'wrong' } }),
      says(/refuses the login of nova.*Check user/),
    );
    await assert.rejects(failing({ authUrl: `${authUrl}/identity` }), says(/There is no Keystone v3 at/));
    await assert.rejects(failing({ scope: undefined }), says(/no catalog, because it is not for a project/));
    await assert.rejects(
      failing({ region: 'RegionNine' }),
      says(/no public endpoint of placement in region RegionNine, only: internal in RegionOne, public in RegionTwo/),
    );
    await assert.rejects(failing({ interface: 'admin' }), says(/no admin endpoint/));
  }));

test('an answer without a description of the token is not an answer of Keystone', async () => {
  for (const body of ['', 'welcome', 'null', '{}', '{"token": {}}', '{"token": {"expires_at": 1}}']) {
    const front = await startFront(async (_incoming, response) => {
      response.writeHead(201, { 'X-Subject-Token': 'admin' }).end(body);
    });
    try {
      const auth = keystone({ authUrl: front.url, credentials: password, scope: project });
      const failing = connect({ auth }).providers.list();
      await assert.rejects(
        failing,
        (error) => error instanceof AuthError && /no Keystone v3 at/.test(error.message),
        body,
      );
    } finally {
      await front.close();
    }
  }
});

test('a signal ends the wait for a login, and the login continues for other calls', () =>
  withKeystone({}, async ({ url: authUrl, logins }) => {
    const placement = connect({
      auth: keystone({ authUrl, credentials: password, scope: project, region: 'RegionOne' }),
    });
    const controller = new AbortController();
    const aborted = placement.providers.list({}, { signal: controller.signal });
    const patient = placement.providers.list();
    controller.abort(new Error('enough'));
    await assert.rejects(aborted, /enough/);
    await patient;
    assert.equal(logins.length, 1);
  }));
