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
