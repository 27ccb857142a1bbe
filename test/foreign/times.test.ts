/** Impossible times: PostgreSQL also has infinite times, and years before and after those of HTTP. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
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
