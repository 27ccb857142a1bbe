import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { at, listAt, newestVersion } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

test('the 401 for a browser or curl names the missing header, and other programs get the answer of OpenStack', async () => {
  await withTestService(anyEngine, {}, async ({ app }) => {
    const ask = async (headers: Record<string, string>) => {
      const answer = await app.request('/traits', { headers });
      assert.equal(answer.status, 401);
      return answer.text();
    };
    for (const accept of [browser, '*/*', 'text/plain']) {
      assert.match(
        await ask({ accept }),
        /The header X-Auth-Token is missing\..* its value is the user, such as admin/,
      );
    }
    const message =
      'This server could not verify that you are authorized to access the document you requested. Either you supplied the ' +
      'wrong credentials (e.g., bad password), or your browser does not understand how to supply the credentials required.' +
      '<br /><br />\n\n\n';
    assert.deepEqual(JSON.parse(await ask({ accept: 'application/json' })), {
      message,
      code: '401 Unauthorized',
      title: 'Unauthorized',
    });
    const openstack = await ask({ accept: browser, 'openstack-api-version': 'placement 1.39' });
    assert.doesNotMatch(openstack, /X-Auth-Token/);
    assert.ok(openstack.includes(message));
  });
});

test('from 2.7 on a 401 has the form of other errors, and before it that of OpenStack', async () => {
  await withTestService(anyEngine, {}, async ({ app }) => {
    const ask = async (version: string) => {
      const answer = await app.request('/traits', { headers: { 'openstack-api-version': version } });
      assert.equal(answer.status, 401);
      return { json: await answer.json(), version: answer.headers.get('openstack-api-version') };
    };
    for (const version of ['placement 2.7', `placement ${newestVersion}`]) {
      const answer = await ask(version);
      const [error] = listAt(answer.json, 'errors');
      assert.deepEqual([at(error, 'status'), at(error, 'title')], [401, 'Unauthorized']);
      assert.match(String(at(error, 'detail')), /^The header X-Auth-Token is missing\./);
      assert.match(String(at(error, 'request_id')), /^req-/);
      assert.equal(at(error, 'code'), 'placement.undefined_code');
      assert.equal(answer.version, version);
    }
    for (const version of ['placement 1.39', 'placement 2.6', 'placement 2.999', 'placement x', 'compute 2.9']) {
      const answer = await ask(version);
      assert.equal(at(answer.json, 'code'), '401 Unauthorized', version);
      assert.equal(answer.version, null);
    }
  });
});

test('where requests that name no version are for 2.7, their 401 has its form', async () => {
  await withTestService(anyEngine, { api: { authStrategy: 'noauth2', defaultVersion: '2.7' } }, async ({ app }) => {
    const answer = await app.request('/traits');
    assert.equal(at(await answer.json(), 'errors', 0, 'status'), 401);
  });
});

test('from 2.7 on what is refused before the version is looked at has the form of other errors, and the type of JSON also by HEAD', async () => {
  await withTestService(anyEngine, {}, async ({ app }) => {
    const ask = async (version: string, method = 'GET', host = 'rebound.example.com') => {
      const headers = { 'x-auth-token': 'admin', 'openstack-api-version': version, host };
      const answer = await app.request('/traits', { method, headers });
      return { status: answer.status, text: await answer.text(), headers: answer.headers };
    };
    for (const version of ['placement 2.7', `placement ${newestVersion}`]) {
      const { status, text, headers } = await ask(version);
      assert.equal(status, 421);
      const [error] = listAt(JSON.parse(text), 'errors');
      assert.match(String(at(error, 'detail')), /^The host rebound\.example\.com is not one/);
      assert.equal(at(error, 'code'), 'placement.undefined_code');
      assert.equal(headers.get('openstack-api-version'), version);
      for (const host of ['rebound.example.com', 'localhost']) {
        assert.equal((await ask(version, 'HEAD', host)).headers.get('content-type'), 'application/json');
      }
    }
    for (const version of ['placement 1.39', 'placement 2.6', 'placement 2.999', 'placement x']) {
      const { status, text, headers } = await ask(version);
      assert.equal(status, 421);
      assert.match(text, /\\n\\n The host rebound/, version);
      assert.equal(at(listAt(JSON.parse(text), 'errors')[0], 'code'), undefined);
      assert.equal(headers.get('openstack-api-version'), null);
      assert.equal((await ask(version, 'HEAD')).headers.get('content-type'), 'text/html; charset=UTF-8');
    }
  });
});
