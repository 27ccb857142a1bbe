/** The answers that clients see from authentication by Keystone and from the policy. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { KeystoneSettings } from '../../src/access/keystone/settings.ts';
import { anyEngine } from '../support/engines.ts';
import { withTestService } from '../support/services.ts';
import { type StandIn, settingsFor, withStandIn } from './stand_in.ts';

type Headers = Readonly<Record<string, string>>;
type Ask = (path: string, headers?: Headers, method?: string) => Promise<Response>;

const withService = (
  more: Partial<KeystoneSettings>,
  use: (standIn: StandIn, ask: Ask) => Promise<void>,
): Promise<void> =>
  withStandIn((standIn) =>
    withTestService(
      anyEngine,
      { api: { authStrategy: 'keystone' }, keystoneAuthtoken: { ...settingsFor(standIn), ...more } },
      ({ app }) => use(standIn, async (path, headers = {}, method = 'GET') => app.request(path, { method, headers })),
    ),
  );

const headersOf = ({ headers }: Response): Readonly<Record<string, string>> => {
  const { 'x-openstack-request-id': requestId = '', 'content-length': length, ...others } = Object.fromEntries(headers);
  assert.match(requestId, /^req-[-0-9a-f]{36}$/);
  assert.match(length ?? '', /^[1-9][0-9]*$/);
  return others;
};

const unauthorized = {
  error: { code: 401, title: 'Unauthorized', message: 'The request you have made requires authentication.' },
};

suite('answers', () => {
  test("401, 403 and 503 as from Keystone's middleware; GET / needs nothing", async () => {
    await withService({}, async (standIn, ask) => {
      for (const headers of [{}, { 'x-auth-token': 'nonsense' }, { accept: 'text/html' }]) {
        for (const path of ['/resource_providers', '/nowhere', '/traits?x=y']) {
          const refused = await ask(path, { ...headers, 'openstack-api-version': 'placement 9.9' });
          assert.equal(refused.status, 401);
          assert.deepEqual(headersOf(refused), {
            'content-type': 'application/json',
            'www-authenticate': 'Keystone uri="http://keystone.example.com:5000"',
          });
          assert.deepEqual(await refused.json(), unauthorized);
        }
      }
      const member = standIn.issue({ roles: ['member'], project: 'p1' });
      const forbidden = await ask('/resource_providers', { 'x-auth-token': member });
      assert.equal(forbidden.status, 403);
      assert.deepEqual(
        ['content-type', 'openstack-api-version', 'vary', 'www-authenticate'].map((name) =>
          forbidden.headers.get(name),
        ),
        ['application/json', 'placement 1.0', null, null],
      );
      const [error] = JSON.parse(await forbidden.text()).errors;
      const detail =
        'Access was denied to this resource.\n\n Policy does not allow placement:resource_providers:list to be performed.  ';
      assert.equal(error.detail, detail);

      const service = standIn.issue({ roles: ['service'], project: 'service' });
      assert.equal((await ask('/resource_providers', { 'x-auth-token': service })).status, 200);

      await standIn.down();
      const fresh = { 'x-auth-token': standIn.issue() };
      const unavailable = await ask('/resource_providers', fresh);
      assert.equal(unavailable.status, 503);
      assert.deepEqual(headersOf(unavailable), { 'content-type': 'application/json' });
      assert.deepEqual(await unavailable.json(), {
        message:
          'The server is currently unavailable. Please try again at a later time.<br /><br />\nThe Keystone service is ' +
          'temporarily unavailable.\n\n',
        code: '503 Service Unavailable',
        title: 'Service Unavailable',
      });
      const html = await ask('/resource_providers', { ...fresh, accept: 'text/html' });
      assert.equal(html.headers.get('content-type'), 'text/html; charset=UTF-8');
      const plain = await ask('/resource_providers', { ...fresh, accept: 'text/plain' });
      assert.equal(
        await plain.text(),
        '503 Service Unavailable\n\nThe server is currently unavailable. Please try again at a later time.\n\n' +
          ' The Keystone service is temporarily unavailable.  ',
      );
      assert.equal(
        (await ask('/resource_providers', { 'x-auth-token': service })).status,
        200,
        'the service remembers the token',
      );
      for (const headers of [{}, fresh]) assert.equal((await ask('/', headers)).status, 200);
    });
  });

  test('headers of a client about its identity have no effect', async () => {
    await withService({}, async (standIn, ask) => {
      const lies = {
        'x-roles': 'admin,service',
        'x-role': 'admin',
        'x-user-id': 'root',
        'x-project-id': 'p2',
        'x-tenant-id': 'p2',
        'x-identity-status': 'Confirmed',
        'x-service-roles': 'service',
        'x-service-identity-status': 'Confirmed',
        'x-is-admin-project': 'True',
        'openstack-system-scope': 'all',
        'x-domain-id': 'default',
      };
      assert.equal((await ask('/resource_providers', lies)).status, 401);
      const reader = { ...lies, 'x-auth-token': standIn.issue({ roles: ['reader'], project: 'p1' }) };
      const latest = { 'openstack-api-version': 'placement latest' };
      assert.equal((await ask('/resource_providers', reader)).status, 403);
      assert.equal((await ask('/usages?project_id=p2', { ...reader, ...latest })).status, 403);
      assert.equal((await ask('/usages?project_id=p1', { ...reader, ...latest })).status, 200);
      assert.equal((await ask('/usages', { ...reader, ...latest })).status, 403);
    });
  });

  test("answers to HEAD have the same type as upstream's", async () => {
    const typeOf = (answer: Response) => [answer.status, answer.headers.get('content-type')];
    const html = 'text/html; charset=UTF-8';
    await withService({}, async (standIn, ask) => {
      const refused = await ask('/traits', {}, 'HEAD');
      assert.deepEqual(typeOf(refused), [401, 'application/json']);
      assert.ok(refused.headers.has('www-authenticate'));
      const admin = { 'x-auth-token': standIn.issue({ roles: ['admin'], project: 'p1' }) };
      assert.deepEqual(typeOf(await ask('/traits', admin, 'HEAD')), [405, html]);
      await standIn.down();
      assert.deepEqual(typeOf(await ask('/traits', { 'x-auth-token': standIn.issue() }, 'HEAD')), [503, html]);
    });
    await withService({ delayAuthDecision: true }, async (_standIn, ask) => {
      for (const headers of [{}, { accept: 'application/json' }, { accept: 'text/plain' }]) {
        const refused = await ask('/traits', headers, 'HEAD');
        assert.deepEqual(typeOf(refused), [401, html]);
        assert.ok(refused.headers.has('www-authenticate'));
      }
    });
  });

  test('with delay_auth_decision the API itself refuses the request', async () => {
    await withService({ delayAuthDecision: true, wwwAuthenticateUri: undefined }, async (standIn, ask) => {
      const refused = await ask('/traits');
      assert.equal(refused.status, 401);
      assert.equal(refused.headers.get('www-authenticate'), `Keystone uri="${standIn.url}"`);
      assert.equal(JSON.parse(await refused.text()).code, '401 Unauthorized');
    });
  });
});
