/** The real OpenStack Placement refuses dry runs and claims by query, which it does not know, and writes nothing. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { succeed } from '../races/client.ts';
import { postgresqlServer } from '../support/engines.ts';
import { createDatabase, type FreshDatabase } from '../support/postgresql.ts';
import { startUpstream, type Upstream, upstreamDbSync } from './placement.ts';

const host = '00000000-0000-4000-8000-000000000001';
const consumer = '00000000-0000-4000-8000-000000000002';
const allocations = { [host]: { resources: { VCPU: 2 } } };

/** The owner of a claim, as a version has it. */
const ownerAt = (minor: number) => ({
  project_id: 'web',
  user_id: 'ada',
  ...(minor >= 28 ? { consumer_generation: null } : {}),
  ...(minor >= 38 ? { consumer_type: 'INSTANCE' } : {}),
});

/** The versions at which the body of a claim has another form. */
const forms = [12, 13, 28, 34, 38, 39];

suite('OpenStack Placement, of what came after it', () => {
  let database: FreshDatabase;
  let upstream: Upstream;

  before(async () => {
    database = await createDatabase(await postgresqlServer());
    await upstreamDbSync(database.url);
    upstream = await startUpstream(database.url);
    await succeed(upstream.client, 'POST', '/resource_providers', 39, { uuid: host, name: 'host' });
    const inventories = { VCPU: { total: 8 } };
    await succeed(upstream.client, 'PUT', `/resource_providers/${host}/inventories`, 39, {
      resource_provider_generation: 0,
      inventories,
    });
  });

  after(async () => {
    await upstream?.stop();
    await database?.drop();
  });

  for (const minor of forms) {
    const owner = ownerAt(minor);
    const writes: readonly (readonly [what: string, since: number, method: string, path: string, body: object])[] = [
      ['a dry run of PUT', 12, 'PUT', `/allocations/${consumer}`, { allocations, ...owner, dry_run: true }],
      ['a query in PUT', 12, 'PUT', `/allocations/${consumer}`, { candidates: 'resources=VCPU:2', ...owner }],
      [
        'a query beside allocations in PUT',
        12,
        'PUT',
        `/allocations/${consumer}`,
        { candidates: 'resources=VCPU:2', allocations, ...owner },
      ],
      ['a dry run of POST', 13, 'POST', '/allocations', { [consumer]: { allocations, ...owner }, dry_run: true }],
      ['a query in POST', 13, 'POST', '/allocations', { [consumer]: { candidates: 'resources=VCPU:2', ...owner } }],
      [
        'a dry run of the reshaper',
        30,
        'POST',
        '/reshaper',
        {
          inventories: { [host]: { inventories: { VCPU: { total: 4 } }, resource_provider_generation: 1 } },
          allocations: { [consumer]: { allocations, ...owner } },
          dry_run: true,
        },
      ],
    ];
    for (const [what, since, method, path, body] of writes) {
      if (minor < since) continue;
      test(`${what} is refused at 1.${minor}, and nothing is written`, async () => {
        const { status } = await upstream.client.send(method, path, minor, body);
        assert.equal(status, 400);
        const held = await succeed(upstream.client, 'GET', `/allocations/${consumer}`, 39);
        assert.deepEqual(held, { allocations: {} });
        // GET of inventories has this field at each version.
        const shown = (await succeed(upstream.client, 'GET', `/resource_providers/${host}/inventories`, 39)) as {
          readonly resource_provider_generation: number;
        };
        assert.equal(shown.resource_provider_generation, 1);
      });
    }
  }

  for (const parameter of ['order=free:VCPU', `apart_from=${consumer}`, `with=${consumer}`]) {
    test(`${parameter} is refused in GET /allocation_candidates`, async () => {
      const path = `/allocation_candidates?resources=VCPU:1&${parameter}`;
      assert.equal((await upstream.client.send('GET', path, 39)).status, 400);
    });
  }

  test('the same claim without the key is written, so that only the key was refused', async () => {
    await succeed(upstream.client, 'PUT', `/allocations/${consumer}`, 39, { allocations, ...ownerAt(39) });
  });
});
