/** Pages of every origin may not send credentials; pages of a listed origin may. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { withTestService } from '../support/services.ts';

const name = 'access-control-allow-credentials';

test('allow-credentials is sent with an origin that is listed, and never with *', async () => {
  const listed = 'https://listed.example.com';
  for (const allowedOrigin of [['*'], ['*', listed], [listed]]) {
    await withTestService(anyEngine, { cors: { allowedOrigin, allowCredentials: true } }, async ({ app }) => {
      for (const origin of [listed, 'https://other.example.com']) {
        for (const method of ['GET', 'OPTIONS', 'PUT']) {
          const headers = { origin, 'x-auth-token': 'admin', 'access-control-request-method': 'GET' };
          // A preflight of a page is no probe.
          for (const path of ['/resource_providers', '/readyz']) {
            const answer = (await app.request(path, { method, headers })).headers;
            const isNamed = answer.get('access-control-allow-origin') === origin;
            assert.equal(answer.get(name), isNamed ? 'true' : null, `${allowedOrigin} ${method} ${path} ${origin}`);
            assert.equal(isNamed, allowedOrigin.includes(listed) && origin === listed, `${allowedOrigin} ${origin}`);
          }
        }
      }
    });
  }
});
