/** `[api] default_version`: the version of requests that name none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { at } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

const shown = 'openstack-api-version';

test('a request that names no version gets the default one, also where a condition needs it', async () => {
  await withTestService(anyEngine, { api: { authStrategy: 'noauth2', defaultVersion: '2.4' } }, async ({ app }) => {
    const ask = (path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET', body?: string) =>
      app.request(path, {
        method,
        headers: { 'x-auth-token': 'admin', 'content-type': 'application/json', ...headers },
        ...(body === undefined ? {} : { body }),
      });
    for (const headers of [{}, { [shown]: 'compute 2.90' }, { [shown]: '1.10' }, { [shown]: 'latest' }]) {
      assert.equal((await ask('/resource_providers', headers)).headers.get(shown), 'placement 2.4');
    }
    assert.equal((await ask('/consumers')).status, 200);
    assert.equal((await ask('/changes')).status, 404, 'it is of 2.5');
    assert.equal(
      (await ask('/resource_providers', { [shown]: 'placement 1.10' })).headers.get(shown),
      'placement 1.10',
    );
    const made = await ask('/resource_providers', {}, 'POST', JSON.stringify({ name: 'host' }));
    const { uuid } = (await made.json()) as { uuid: string }; // by openapi.yaml
    const renamed = await ask(
      `/resource_providers/${uuid}`,
      { 'if-match': 'W/"0"' },
      'PUT',
      JSON.stringify({ name: 'new' }),
    );
    assert.equal(renamed.status, 412);
  });
});

test('the 404 of a path that does not exist names it from 2.2 on, and is that of OpenStack before', async () => {
  await withTestService(anyEngine, {}, async ({ app }) => {
    const detailAt = async (version: string, path = '/placement/traits'): Promise<string> => {
      const headers = { 'x-auth-token': 'admin', [shown]: `placement ${version}` };
      const answer = await app.request(path, { headers });
      assert.equal(answer.status, 404);
      return String(at(await answer.json(), 'errors', 0, 'detail'));
    };
    assert.equal(await detailAt('2.9'), 'There is no path /placement/traits here.');
    assert.ok((await detailAt('2.9', `/${'x'.repeat(5000)}`)).length < 250);
    for (const version of ['1.0', '1.39'])
      assert.equal(await detailAt(version), 'The resource could not be found.\n\n   ');
  });
});

test('GET / has the same answer, whatever the default version', async () => {
  const rootAt = (defaultVersion: string) =>
    withTestService(anyEngine, { api: { authStrategy: 'noauth2', defaultVersion } }, async ({ app }) => {
      const answer = await app.request('/');
      return [answer.headers.get(shown), answer.headers.get('openstack-api-maximum-version'), await answer.text()];
    });
  const usual = await rootAt('1.0');
  assert.deepEqual(usual.slice(0, 2), ['placement 1.0', 'placement 1.39']);
  assert.deepEqual(await rootAt('2.6'), usual);
});
