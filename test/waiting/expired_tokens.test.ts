/** Claims that wait with tokens of Keystone, which is unreachable when they can be placed. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { settingsFor, withStandIn } from '../keystone/stand_in.ts';
import { anyEngine } from '../support/engines.ts';
import { accepted, listAt, makeProvider, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';
import { consumerBody, host, version } from './scene.ts';

test('while Keystone is unreachable a claim whose token has expired is not placed, and other claims are', () =>
  withStandIn((standIn) => {
    const keystoneAuthtoken = { ...settingsFor(standIn), tokenCacheTime: 0, httpRequestMaxRetries: 0 };
    return withTestService(anyEngine, { api: { authStrategy: 'keystone' }, keystoneAuthtoken }, async (service) => {
      const operator = requestsTo({ app: service.operatorApp() }, version);
      const send = requestsTo(service, version);
      await makeProvider(operator, host, { PGPU: { total: 1 } });
      const holder = randomUUID();
      accepted(await operator('PUT', `/allocations/${holder}`, consumerBody({})));
      const lifetime = 10;
      const claims = [lifetime, 600].map((seconds) => {
        const headers = { 'x-auth-token': standIn.issue({ roles: ['admin'], lifetime: seconds }), prefer: 'wait=60' };
        return send('PUT', `/allocations/${randomUUID()}`, { ...consumerBody({}), line: 'gpu' }, version, headers);
      });
      await until('both wait', async () => listAt((await operator('GET', '/waiting')).json, 'waiting').length === 2);
      await standIn.down();
      await sleep(lifetime * 1000);
      accepted(await operator('DELETE', `/allocations/${holder}`));
      assert.deepEqual(
        (await Promise.all(claims)).map(({ status }) => status),
        [401, 200],
      );
    });
  }));
