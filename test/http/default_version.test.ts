/** `[api] default_version`: the version of requests that name none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
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

test('GET / is the same, whatever the default', async () => {
  const rootAt = (defaultVersion: string) =>
    withTestService(anyEngine, { api: { authStrategy: 'noauth2', defaultVersion } }, async ({ app }) => {
      const answer = await app.request('/');
      return [answer.headers.get(shown), answer.headers.get('openstack-api-maximum-version'), await answer.text()];
    });
  const usual = await rootAt('1.0');
  assert.deepEqual(usual.slice(0, 2), ['placement 1.0', 'placement 1.39']);
  assert.deepEqual(await rootAt('2.6'), usual);
});
