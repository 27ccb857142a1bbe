/** What /metrics tells of Keystone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { withTestService } from '../support/services.ts';
import { settingsFor, withStandIn } from './stand_in.ts';

test('requests to Keystone are counted by their status, and requests of users by what was decided', () =>
  withStandIn((standIn) => {
    const keystoneAuthtoken = { ...settingsFor(standIn), httpRequestMaxRetries: 1 };
    return withTestService(anyEngine, { api: { authStrategy: 'keystone' }, keystoneAuthtoken }, async ({ app }) => {
      const ask = async (token: string): Promise<number> =>
        (await app.request('/resource_providers', { headers: { 'x-auth-token': token } })).status;
      const series = async (): Promise<readonly string[]> => {
        const text = await (await app.request('/metrics')).text();
        return text
          .split('\n')
          .filter((line) => /^placement_keystone_(requests|decisions)_total|^placement_keystone.*_count/.test(line));
      };
      assert.ok((await series()).includes('placement_keystone_decisions_total{outcome="unavailable"} 0'));
      const token = standIn.issue({ user: 'alice', roles: ['admin'], project: 'p' });
      assert.deepEqual([await ask(token), await ask(token), await ask('invented')], [200, 200, 401]);
      await standIn.down();
      assert.equal(await ask('another'), 503);
      assert.deepEqual((await series()).toSorted(), [
        'placement_keystone_decisions_total{outcome="accepted"} 2',
        'placement_keystone_decisions_total{outcome="busy"} 0',
        'placement_keystone_decisions_total{outcome="unauthorized"} 1',
        'placement_keystone_decisions_total{outcome="unavailable"} 1',
        'placement_keystone_request_duration_seconds_count 5',
        'placement_keystone_requests_total{status="200"} 1',
        'placement_keystone_requests_total{status="201"} 1',
        'placement_keystone_requests_total{status="404"} 1',
        'placement_keystone_requests_total{status="none"} 2',
      ]);
    });
  }));

test('a service without Keystone has no such metrics', () =>
  withTestService(anyEngine, {}, async ({ app }) => {
    assert.ok(!(await (await app.request('/metrics')).text()).includes('placement_keystone'));
  }));
