/** Impossible times: PostgreSQL also has infinite times, and years before and after those of HTTP. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { asNova, services, withRegistry } from '../compute/nova.ts';
import { anyEngine, engines } from '../support/engines.ts';
import { accepted, at, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';
import { claimOf, holder, host, withDeployment } from './deployment.ts';

const tables = ['resource_providers', 'inventories', 'allocations', 'consumers', 'traits', 'resource_classes'];
const paths = ['', '/inventories', '/inventories/VCPU', '/allocations', '/traits'].map(
  (path) => `/resource_providers/${host}${path}`,
);

for (const time of ['infinity', '-infinity', '20000-01-01', '294276-12-31', '4713-01-01 BC']) {
  test(`a row with the time ${time} has a Last-Modified between 1970 and now`, async () => {
    await withDeployment(async ({ succeed, execute }) => {
      await execute(...tables.map((table) => `update ${table} set created_at = '${time}', updated_at = '${time}'`));
      for (const path of [...paths, `/allocations/${holder}`, '/traits', '/resource_classes/VCPU']) {
        const shown = (await succeed('GET', path)).headers.get('last-modified') ?? '';
        assert.match(shown, /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/, path);
        assert.ok(Date.parse(shown) >= 0 && Date.parse(shown) <= Date.now(), `${path}: ${shown}`);
      }
      await succeed('PUT', `/resource_providers/${host}`, { name: 'renamed' });
      await succeed('PUT', `/allocations/${holder}`, { ...claimOf(3), consumer_generation: 1 });
    });
  });
}

for (const engine of engines) {
  test(`an infinite term is shown as none, and that of one consumer keeps no other one, on ${engine}`, async () => {
    await withDeployment(async ({ service, succeed, execute }) => {
      const send = requestsTo(service, 'placement 2.9');
      const [kept, ended, other] = [holder, randomUUID(), randomUUID()];
      await execute("insert into consumer_terms select id, generation, 'infinity' from consumers");
      for (const consumer of [ended, other]) {
        const claim = { ...claimOf(1), consumer_type: 'JOB', expires_in: 3600 };
        accepted(await send('PUT', `/allocations/${consumer}`, claim));
      }
      const lists = ['/consumers', '/holdings', `/consumers/${kept}`, `/allocations/${kept}`];
      for (const path of lists) accepted(await send('GET', path));
      assert.equal(at(accepted(await send('GET', `/consumers/${kept}`)).json, 'expires_at'), null);
      const set = (consumer: string, end: string) =>
        execute(
          `update consumer_terms set expires_at = ${end} where consumer_id = (select id from consumers where uuid = '${consumer}')`,
        );
      await set(ended, "'-infinity'");
      for (const path of lists) accepted(await send('GET', path));
      await set(other, "now() - interval '1 second'");
      const isGone = async (consumer: string) => (await send('GET', `/consumers/${consumer}`)).status === 404;
      await until('both are removed', async () => (await isGone(ended)) && (await isGone(other)));
      await succeed('GET', `/allocations/${kept}`);
      assert.ok(!(await isGone(kept)));
    }, engine);
  });
}

test('a token whose end is infinity never ends, and is listed', async () => {
  await withTestService(anyEngine, { api: { authStrategy: 'tokens' } }, async ({ app, operatorApp, database }) => {
    const headers = { 'openstack-api-version': 'placement 2.7', 'content-type': 'application/json' };
    const body = JSON.stringify({ user_id: 'ada', project_id: 'ci', roles: ['admin'], expires_in: 60 });
    const { token } = (await (await operatorApp().request('/tokens', { method: 'POST', headers, body })).json()) as {
      readonly token: string;
    };
    await sql`update tokens set expires_at = 'infinity', used_at = '-infinity'`.execute(database.kysely);
    const answer = await app.request('/tokens', { headers: { ...headers, authorization: `Bearer ${token}` } });
    assert.equal(answer.status, 200);
    assert.equal(at(await answer.json(), 'tokens', 0, 'expires_at'), null);
  });
});

test('a service that was seen at an infinite time is down', async () => {
  await withTestService(anyEngine, withRegistry, async (service) => {
    const send = asNova(service);
    accepted(await send('POST', services, { host: 'h', binary: 'nova-compute' }));
    for (const time of ['infinity', '-infinity']) {
      await sql`update services set last_seen_up = ${time}::timestamp, created_at = ${time}::timestamp`.execute(
        service.database.kysely,
      );
      assert.equal(at(accepted(await send('GET', services)).json, 'services', 0, 'state'), 'down');
    }
  });
});
