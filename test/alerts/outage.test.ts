/** What the expressions of the alerts select of what /metrics says before and in an outage that really happens. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { suite, test } from 'node:test';
import { openService } from '../../src/start/service.ts';
import { settingsFor, withStandIn } from '../keystone/stand_in.ts';
import { startRestartable } from '../soak/restartable_postgresql.ts';
import { anyEngine } from '../support/engines.ts';
import { createDatabase } from '../support/postgresql.ts';
import { makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { testConfig, withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';
import { evaluate } from './evaluate.ts';
import { alertRules, ruleOf } from './rules.ts';
import { scraped } from './scenes.ts';
import { readSamples, type Sample } from './series.ts';

/** Those that `evaluate` understands. */
const understood = alertRules.filter(({ expr }) => !expr.includes('histogram_quantile'));

/** A function that scrapes, and tells the alerts of which the expression selects something, by this scrape and the one before. */
async function watch(send: Send) {
  const scrape = async (): Promise<readonly Sample[]> => {
    const samples = readSamples((await send('GET', '/metrics')).text);
    return samples.map(({ labels, value }) => ({ labels: { ...labels, ...scraped }, value }));
  };
  let [before, beforeMs] = [await scrape(), performance.now()];
  return async (): Promise<readonly string[]> => {
    const [now, nowMs] = [await scrape(), performance.now()];
    const scrapes = { before, now, seconds: (nowMs - beforeMs) / 1000 };
    [before, beforeMs] = [now, nowMs];
    return understood.filter(({ expr }) => evaluate(expr, scrapes).length > 0).map(({ alert }) => alert);
  };
}

suite('the expressions of alerts', () => {
  test('select the outage while the database is stopped, and nothing before and after it', async () => {
    const server = await startRestartable();
    const { url } = await createDatabase(server.url);
    const service = await openService(testConfig({ placementDatabase: { connection: url, syncOnStartup: true } }));
    const send = requestsTo(service);
    try {
      const host = randomUUID();
      await makeProvider(send, host, { VCPU: { total: 100 } });
      const ask = async (): Promise<readonly number[]> => {
        const statuses: number[] = [];
        for (let count = 0; count < 5; count += 1) {
          const claim = await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 1 } }));
          statuses.push(claim.status, (await send('GET', '/resource_providers')).status);
        }
        return statuses;
      };
      await ask();
      const firing = await watch(send);
      await ask();
      assert.deepEqual(await firing(), []);
      await server.shutDownAtOnce();
      assert.deepEqual(new Set(await ask()), new Set([503]));
      await firing(); // the series of the new status begins with this scrape
      await ask();
      assert.deepEqual(await firing(), ['PlacementDatabaseAway', 'PlacementErrors']);
      await server.start();
      await until('the service serves', async () => (await send('GET', '/readyz')).status === 200);
      await firing();
      assert.deepEqual(new Set(await ask()), new Set([204, 200]));
      assert.deepEqual(await firing(), []);
    } finally {
      await service.close();
      await server.stop();
    }
  });

  test('select a Keystone that has not answered for long enough', () =>
    withStandIn((standIn) => {
      const keystoneAuthtoken = { ...settingsFor(standIn), httpRequestMaxRetries: 0 };
      return withTestService(anyEngine, { api: { authStrategy: 'keystone' }, keystoneAuthtoken }, async (service) => {
        const ask = async (): Promise<number> => {
          const token = standIn.issue({ roles: ['admin'], project: 'p' });
          return (await service.app.request('/resource_providers', { headers: { 'x-auth-token': token } })).status;
        };
        const send = requestsTo(service);
        assert.equal(await ask(), 200);
        const firing = await watch(send);
        await standIn.down();
        for (let count = 0; count < 5; count += 1) assert.equal(await ask(), 503);
        await firing();
        for (let count = 0; count < 5; count += 1) assert.equal(await ask(), 503);
        // The answers are 503 at once; the alert about Keystone comes after a minute, which promtool's recording covers.
        assert.deepEqual(await firing(), ['PlacementErrors']);
        const { expr } = ruleOf('PlacementKeystoneAway');
        const inAMinute = expr.replace('> 60', '> 0');
        assert.notEqual(inAMinute, expr);
        const samples = readSamples((await send('GET', '/metrics')).text);
        const formerly = samples.map((sample) => ({ ...sample, value: 0 }));
        assert.equal(evaluate(inAMinute, { before: formerly, now: samples, seconds: 60 }).length, 1);
        assert.equal(evaluate(inAMinute, { before: samples, now: samples, seconds: 60 }).length, 0);
      });
    }));
});
