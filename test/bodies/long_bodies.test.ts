/** Bodies of up to 10 MiB are read by default, and others are served meanwhile. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { suite, test } from 'node:test';
import { openDatabase } from '../../db/engine/connect.ts';
import { openOwners } from '../../src/claims/owners.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { anyEngine, withFreshDatabase } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { numberedUuid } from '../support/uuids.ts';

const host = '8ca5d4a0-3f40-4a53-a2e4-4b4e9b8f0f11';
const inventory = { total: 1_000_000 };

const withHost = (use: (send: Send, service: PlacementService) => Promise<void>) =>
  withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service);
    await makeProvider(send, host, { VCPU: inventory, MEMORY_MB: inventory });
    await use(send, service);
  });

/** A text of JSON with so many bytes, of which the last ones are spaces. */
const padded = (json: unknown, bytes: number): string => JSON.stringify(json).padEnd(bytes);

async function post({ app }: PlacementService, path: string, body: string, method = 'POST') {
  const headers = {
    'x-auth-token': 'admin',
    'openstack-api-version': 'placement 1.39',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
  };
  const response = await app.request(path, { method, headers, body });
  return { status: response.status, text: await response.text() };
}

suite('the length of a body', () => {
  test('the limit of a body is 10 MiB', () =>
    withHost(async (_, service) => {
      const limit = 10 * 1024 * 1024;
      assert.equal((await post(service, '/resource_providers', padded({ name: 'a' }, limit))).status, 200);
      const { status, text } = await post(service, '/resource_providers', padded({ name: 'b' }, limit + 1));
      assert.equal(status, 413);
      assert.match(text, /may have 10485760 bytes \(\[oslo_middleware\] max_request_body_size\)/);
    }));

  test('the limit of a body is enough to reshape a host with a thousand instances', () =>
    withHost(async (send) => {
      const instances = Array.from({ length: 1000 }, () => randomUUID());
      const claims = Object.fromEntries(
        instances.map((uuid) => [uuid, newClaim({ [host]: { VCPU: 1, MEMORY_MB: 512 } })]),
      );
      accepted(await send('POST', '/allocations', claims));
      const child = randomUUID();
      accepted(await send('POST', '/resource_providers', { name: 'numa', uuid: child, parent_provider_uuid: host }));
      const { json } = await send('GET', `/resource_providers/${host}`);
      const body = {
        inventories: {
          [host]: { resource_provider_generation: at(json, 'generation'), inventories: { MEMORY_MB: inventory } },
          [child]: { resource_provider_generation: 0, inventories: { VCPU: inventory } },
        },
        allocations: Object.fromEntries(
          instances.map((uuid) => [
            uuid,
            { ...newClaim({ [host]: { MEMORY_MB: 512 }, [child]: { VCPU: 1 } }), consumer_generation: 1 },
          ]),
        ),
      };
      assert.ok(JSON.stringify(body).length > 250_000);
      accepted(await send('POST', '/reshaper', body));
      const { json: usages } = await send('GET', `/resource_providers/${child}/usages`);
      assert.deepEqual(at(usages, 'usages'), { VCPU: 1000 });
    }));

  test('the limit of a body is enough for the 500 consumers by query that one POST may have', () =>
    withHost(async (send) => {
      const { allocations: _, ...owner } = newClaim({});
      // As long as the query of a flavor with many traits that hosts must not have.
      const without = Array.from({ length: 10 }, (_, n) => `!CUSTOM_FORBIDDEN_TRAIT_${n}`);
      for (const name of without) accepted(await send('PUT', `/traits/${name.slice(1)}`));
      const candidates = `resources=VCPU:1&required=${without.join()}`;
      const body = Object.fromEntries(
        Array.from({ length: 500 }, (): [string, object] => [randomUUID(), { ...owner, candidates }]),
      );
      assert.ok(JSON.stringify(body).length > 200_000);
      const { json } = accepted(await send('POST', '/allocations', body, 'placement 2.4'));
      assert.equal(Object.keys(Object(json)).length, 500);
    }));
});

test('while a long body is read, other requests are served', () =>
  withHost(async (_, service) => {
    const many = (each: (n: number) => string, length = 3_000_000): string => {
      const parts = [each(0)];
      for (let bytes = 0; bytes < length; bytes += (parts.at(-1) ?? '').length + 1) parts.push(each(parts.length));
      return parts.join(',');
    };
    const uuids = (n: number): string => `"${numberedUuid(n)}"`;
    const provider = `/resource_providers/${host}`;
    for (const [what, method, path, body] of [
      ['a list where an object should be', 'POST', '/resource_providers', `[${many(() => '1')}]`],
      ['wrong aggregates', 'PUT', `${provider}/aggregates`, `{"aggregates":[${many(() => '{}')}]}`],
      ['one aggregate again and again', 'PUT', `${provider}/aggregates`, `{"aggregates":[${many(() => uuids(0))}]}`],
      ['traits that do not exist', 'PUT', `${provider}/traits`, `{"traits":[${many((n) => `"T${n}"`)}]}`],
      [
        'inventories without a total',
        'PUT',
        `${provider}/inventories`,
        `{"inventories":{${many((n) => `"C${n}":{}`, 500_000)}}}`,
      ],
      ['consumers that are empty', 'POST', '/allocations', `{${many((n) => `${uuids(n)}:{}`)}}`],
      ['unknown keys', 'POST', '/resource_providers', `{${many((n) => `"key ${n}":1`, 1_000_000)}}`],
    ] as const) {
      let isAnswered = false;
      const answer = post(service, path, body, method).finally(() => {
        isAnswered = true;
      });
      let served = 0;
      for (; !isAnswered; served += 1) {
        assert.equal((await service.app.request('/')).status, 200);
        await new Promise((resolve) => setImmediate(resolve));
      }
      const { status, text } = await answer;
      assert.equal(status, 400, what);
      assert.ok(text.length < 10_000, `${what}: ${text.length}`);
      // Done at once, others would be served once or twice: before and after it.
      assert.ok(served >= 5, `${what}: ${served} requests were served meanwhile`);
    }
  }));

test('a claim of many consumers of one new project inserts its owners by few statements', () =>
  withFreshDatabase(anyEngine, async ({ settings }) => {
    let statements = 0;
    const counted = {
      ...settings,
      onStatement: () => {
        statements += 1;
      },
    };
    const database = await openDatabase(counted);
    try {
      const consumer = { projectExternalId: 'p', userExternalId: 'u', consumerType: 'INSTANCE' };
      const before = statements;
      await openOwners(database).ensure({ consumers: Array.from({ length: 500 }, () => consumer) });
      assert.ok(statements - before < 20, `${statements - before} statements`);
      const made = await database.kysely
        .selectFrom('projects')
        .select('external_id')
        .where('external_id', '=', 'p')
        .execute();
      assert.equal(made.length, 1);
    } finally {
      await database.close();
    }
  }));
