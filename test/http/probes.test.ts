import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { version } from '../../src/config/version.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { anyEngine, engines } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

const host = '8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11';

/** The service requires a token, so that the tests see that the probes do not. */
const withHost = (use: (service: PlacementService) => Promise<void>, engine = anyEngine) =>
  withTestService(engine, {}, async (service) => {
    const send = requestsTo(service);
    const inventories = { VCPU: { total: 8, reserved: 1, allocation_ratio: 1.5 }, MEMORY_MB: { total: 4096 } };
    await makeProvider(send, host, inventories, { name: 'rack 1 "left"\\' });
    accepted(await send('PUT', '/allocations/1b1d3c4e-1111-4222-8333-444455556666', newClaim({ [host]: { VCPU: 3 } })));
    await use(service);
  });

for (const engine of engines) {
  suite(`probes on ${engine}`, () => {
    test('are 200 without a token while the database answers, and 503 while it does not', async () => {
      await withTestService(engine, {}, async ({ app, database }) => {
        for (const path of ['/healthcheck', '/readyz']) {
          const healthy = await app.request(path);
          assert.deepEqual([healthy.status, await healthy.text()], [200, 'OK']);
          assert.equal((await app.request(path, { method: 'HEAD' })).status, 204);
        }
        const asJson = await app.request('/healthcheck', { headers: { accept: 'application/json' } });
        assert.deepEqual(await asJson.json(), { detailed: false, reasons: ['OK'] });

        const { kysely } = database;
        await kysely.schema.alterTable('provider_changes').renameTo('elsewhere').execute();
        try {
          const broken = await app.request('/healthcheck');
          const why = 'Tables of the database are gone, or of another release';
          assert.deepEqual([broken.status, await broken.text()], [503, why]);
          const brokenJson = await app.request('/healthcheck', { headers: { accept: 'application/json' } });
          assert.deepEqual([brokenJson.status, await brokenJson.json()], [503, { detailed: false, reasons: [why] }]);
          assert.equal((await app.request('/readyz', { method: 'HEAD' })).status, 503);
        } finally {
          await kysely.schema.alterTable('elsewhere').renameTo('provider_changes').execute();
        }
        assert.equal((await app.request('/readyz')).status, 200);
      });
    });

    test('are 503 where an older dump was restored under the service', async () => {
      await withTestService(engine, {}, async ({ app, database }) => {
        await sql`delete from kysely_migration where name like '014%'`.execute(database.kysely);
        const older = await app.request('/readyz');
        const why = 'Tables of the database are gone, or of another release';
        assert.deepEqual([older.status, await older.text()], [503, why]);
      });
    });
  });
}

suite('/metrics', () => {
  test('has the text format of Prometheus, by the rules of promtool: each series once, under the type of its name', () =>
    withHost(async ({ app }) => {
      const answer = await app.request('/metrics');
      assert.equal(answer.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
      const types = new Map<string, string>();
      const series = new Set<string>();
      const text = await answer.text();
      assert.ok(text.endsWith('\n'));
      for (const line of text.split('\n').filter((each) => each !== '')) {
        const [, typed, type] = /^# TYPE (\w+) (counter|gauge|histogram|summary|untyped)$/.exec(line) ?? [];
        if (typed !== undefined && type !== undefined) {
          assert.ok(!types.has(typed), `${typed} has one type`);
          types.set(typed, type);
          assert.ok(text.includes(`# HELP ${typed} `), `${typed} has a help`);
          if (type !== 'untyped') assert.equal(typed.endsWith('_total'), type === 'counter', `${typed}, a ${type}`);
          assert.doesNotMatch(
            typed,
            /[A-Z:]|_(count|sum|bucket)$|counter|gauge|histogram|_(milliseconds|ms|minutes|kb)\b/,
          );
        }
        if (line.startsWith('#')) continue;
        // The library writes Nan. Prometheus accepts the word in any case.
        const sample = /^([a-zA-Z_:]\w*)(\{(?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*\})? (Nan|[+-]Inf|[-+.\deE]+)$/.exec(
          line,
        );
        assert.ok(sample, line);
        const [, name = '', labels = ''] = sample;
        assert.ok(types.has(name) || types.has(name.replace(/_(bucket|sum|count)$/, '')), `${name} has a type`);
        assert.ok(!series.has(name + labels), `${name}${labels} is there once`);
        series.add(name + labels);
      }
    }));

  test('reports the same capacity as the API', () =>
    withHost(async (service) => {
      const send = requestsTo(service);
      const { text } = await send('GET', '/metrics');
      const figure = (name: string, resource: string) =>
        Number(
          text
            .split('\n')
            .find((line) =>
              line.startsWith(
                `openstack_placement_resource_${name}{hostname="rack 1 \\"left\\"\\\\",resourcetype="${resource}"} `,
              ),
            )
            ?.split(' ')
            .at(-1),
        );
      const { json: inventories } = await send('GET', `/resource_providers/${host}/inventories`);
      const { json: usages } = await send('GET', `/resource_providers/${host}/usages`);
      const resources = Object.keys(Object(at(inventories, 'inventories')));
      assert.deepEqual(resources.sort(), ['MEMORY_MB', 'VCPU']);
      for (const resource of resources) {
        for (const name of ['total', 'reserved', 'allocation_ratio']) {
          assert.equal(figure(name, resource), at(inventories, 'inventories', resource, name));
        }
        assert.equal(figure('used', resource), at(usages, 'usages', resource));
        assert.equal(figure('usage', resource), at(usages, 'usages', resource));
      }
    }));

  test('counts requests by endpoint, status and microversion, and claims by their outcome', () =>
    withHost(async (service) => {
      const send = requestsTo(service);
      await send('GET', '/no/such/path');
      const tooMuch = newClaim({ [host]: { VCPU: 9 } });
      assert.equal((await send('PUT', '/allocations/2b1d3c4e-1111-4222-8333-444455556666', tooMuch)).status, 409);
      const { text } = await send('GET', '/metrics');
      for (const line of [
        'placement_requests_total{method="PUT",route="/allocations/:consumer_uuid",status="204",microversion="1.39"} 1',
        'placement_requests_total{method="PUT",route="/allocations/:consumer_uuid",status="409",microversion="1.39"} 1',
        'placement_requests_total{method="GET",route="none",status="404",microversion="1.39"} 1',
        'placement_request_duration_seconds_count{method="PUT",route="/allocations/:consumer_uuid"} 2',
        'placement_claims_total{outcome="written"} 1',
        'placement_claims_total{outcome="invalid inventory"} 1',
        'placement_providers 1',
        `placement_build_info{version="${version}"} 1`,
      ]) {
        assert.ok(text.includes(`\n${line}\n`), `${line} is not in\n${text.match(/^placement_.*$/gm)?.join('\n')}`);
      }
    }));

  test('answers within seconds with the figures that it has while the database does not answer, and so do probes', () =>
    withHost(async ({ app, database }) => {
      const { promise: unlocked, resolve: unlock } = Promise.withResolvers<void>();
      const { promise: locked, resolve: lock } = Promise.withResolvers<void>();
      const holder = database.unlimited.transaction().execute(async (transaction) => {
        await sql`lock table provider_changes in access exclusive mode`.execute(transaction);
        lock();
        await unlocked;
      });
      await locked;
      try {
        const late = sleep(15_000, undefined, { ref: false });
        const ready = app.request('/readyz');
        const answer = await Promise.race([app.request('/metrics'), late]);
        assert.ok(answer, 'Prometheus waits for 10 s only');
        const text = await answer.text();
        assert.match(text, /^placement_fleet_age_seconds \d/m);
        assert.doesNotMatch(text, /openstack_placement/);
        const unready = await ready;
        const why = 'The database has not answered within 2000 ms';
        assert.deepEqual([unready.status, await unready.text()], [503, why]);
      } finally {
        unlock();
        await holder;
      }
      assert.match(await (await app.request('/metrics')).text(), /openstack_placement/);
    }, 'postgresql'));

  test('reports as many providers as configured, and does not exist if it is switched off', async () => {
    await withTestService(anyEngine, { metrics: { enabled: true, providerLimit: 0 } }, async ({ app }) => {
      const text = await (await app.request('/metrics')).text();
      assert.ok(text.includes('placement_providers 0'));
      assert.ok(!text.includes('openstack_placement'));
    });
    await withTestService(anyEngine, { metrics: { enabled: false, providerLimit: -1 } }, async (service) => {
      assert.equal((await requestsTo(service)('GET', '/metrics')).status, 404);
    });
  });
});
