import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
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
