/** What /metrics tells of Keystone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { anyEngine } from '../support/engines.ts';
import { withTestService } from '../support/services.ts';
import { settingsFor, withStandIn } from './stand_in.ts';

test('requests to Keystone are counted by their status, and requests of users by the decision about their tokens', () =>
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
      const answerAge = async (): Promise<number> =>
        Number(
          /^placement_keystone_answer_age_seconds (\S+)$/m.exec(await (await app.request('/metrics')).text())?.[1],
        );
      await sleep(1_100);
      assert.ok((await answerAge()) > 1, 'before the first answer, since the start');
      assert.ok((await series()).includes('placement_keystone_decisions_total{outcome="unavailable"} 0'));
      const token = standIn.issue({ user: 'alice', roles: ['admin'], project: 'p' });
      assert.deepEqual([await ask(token), await ask(token)], [200, 200]);
      const askedMs = performance.now();
      assert.equal(await ask('invented'), 401);
      const ageMs = (await answerAge()) * 1000;
      assert.ok(ageMs <= performance.now() - askedMs, 'a token that Keystone does not know is a good answer as well');
      await sleep(1_100);
      assert.equal(await ask(token), 200, 'without Keystone, by what it has said before');
      standIn.behaviour.broken = { status: 500, text: '' };
      assert.equal(await ask('a third one'), 503);
      assert.ok((await answerAge()) > 1, 'a 500 is no good answer');
      await standIn.down();
      assert.equal(await ask('another'), 503);
      assert.deepEqual((await series()).toSorted(), [
        'placement_keystone_decisions_total{outcome="accepted"} 3',
        'placement_keystone_decisions_total{outcome="busy"} 0',
        'placement_keystone_decisions_total{outcome="unauthorized"} 1',
        'placement_keystone_decisions_total{outcome="unavailable"} 2',
        'placement_keystone_request_duration_seconds_count 6',
        'placement_keystone_requests_total{status="200"} 1',
        'placement_keystone_requests_total{status="201"} 1',
        'placement_keystone_requests_total{status="404"} 1',
        'placement_keystone_requests_total{status="500"} 1',
        'placement_keystone_requests_total{status="none"} 2',
      ]);
    });
  }));

test('a service without Keystone has no such metrics', () =>
  withTestService(anyEngine, {}, async ({ app }) => {
    assert.ok(!(await (await app.request('/metrics')).text()).includes('placement_keystone'));
  }));
