/** Several deployments in one database, each in a schema of its own. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { runToEnd } from '../manage/commands.ts';
import { withEmptyDatabase } from '../support/engines.ts';
import { execute } from '../support/postgresql.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';

const withPath = (url: string, path: string): string => `${url}?options=${encodeURIComponent(`-csearch_path=${path}`)}`;
const sync = (url: string) => runToEnd('placement-manage', ['db', 'sync'], '/', { DATABASE_URL: url });

test('two deployments in two schemas of one database share nothing', async () => {
  await withEmptyDatabase(async (url) => {
    await execute(url, 'create schema blue; create schema "Green, too"');
    const urls = [url, withPath(url, 'blue'), withPath(url, '"Green,\\ too"')];
    for (const each of urls) {
      const { code, stderr } = await sync(each);
      assert.equal(code, 0, stderr);
    }
    const services = [];
    try {
      for (const connection of urls) {
        const settings = { connection, maxPoolSize: 2 };
        services.push(await openServiceOn({ settings, config: { connection }, drop: async () => {} }));
      }
      const [host, consumer] = [randomUUID(), randomUUID()];
      for (const [index, service] of services.entries()) {
        const send = requestsTo(service);
        assert.equal((await send('GET', `/resource_providers/${host}`)).status, 404, 'not that of the others');
        await makeProvider(send, host, { VCPU: { total: 8 } });
        accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: index + 1 } })));
      }
      for (const [index, service] of services.entries()) {
        const usages = accepted(await requestsTo(service)('GET', `/resource_providers/${host}/usages`));
        assert.deepEqual(at(usages.json, 'usages'), { VCPU: index + 1 });
      }
    } finally {
      for (const service of services) await service.close();
    }
  });
});

test('db sync refuses a search_path without a schema, and one that leads to the tables of another deployment', async () => {
  await withEmptyDatabase(async (url) => {
    await execute(url, 'create schema blue');
    const none = await sync(withPath(url, 'missing'));
    assert.equal(none.code, 1);
    assert.match(none.stderr, /None of the schemas in the search_path of role postgres \(missing\) exists/);
    assert.equal((await sync(url)).code, 0);
    const both = await sync(withPath(url, 'blue,public'));
    assert.equal(both.code, 1);
    assert.match(
      both.stderr,
      /leads to the tables of a Placement in schema public, but new tables would be made in schema blue/,
    );
    const { rowCount } = await execute(url, `select from pg_class where relnamespace = 'blue'::regnamespace`);
    assert.equal(rowCount, 0, 'nothing was made');
  });
});

test('db sync refuses a search_path that leads to a second deployment behind the first one', async () => {
  await withEmptyDatabase(async (url) => {
    await execute(url, 'create schema "Blue, too"; create schema green; create schema red');
    for (const path of ['"Blue,\\ too"', 'green']) assert.equal((await sync(withPath(url, path))).code, 0);
    for (const [path, other] of [
      ['"Blue,\\ too",red,green', 'green'],
      ['green,missing,"Blue,\\ too"', '"Blue, too"'],
    ] as const) {
      const { code, stderr } = await sync(withPath(url, path));
      assert.equal(code, 1);
      assert.ok(stderr.includes(`leads to the tables of a Placement in schema ${other},`), stderr);
      assert.ok(stderr.includes(`set search_path = ${other}; to use those tables`), stderr);
    }
    assert.equal((await sync(withPath(url, 'green,red'))).code, 0, 'schemas without such tables are no deployments');
  });
});
