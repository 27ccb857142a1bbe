import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, type Placement, VersionError, type VersionProblem } from '../../src/client/index.ts';
import { newestVersion } from '../support/requests.ts';
import { type Limits, startServer, startServerWithoutMicroversions, type TestServer } from './servers.ts';

/*
 * The use cases in which a client and a server with microversions find a common version, with their numbers, as
 * OpenStack specified them for Ironic. An "old" client or server is from before microversions.
 */

const versionHeader = 'openstack-api-version';

/** The versions of the requests to a server. `undefined` is a request that named no version. */
const requestedVersions = ({ seen }: TestServer) => seen.map(({ headers }) => headers[versionHeader]);

async function withServer(limits: Limits | 'without microversions', use: (server: TestServer) => Promise<void>) {
  const server =
    limits === 'without microversions' ? await startServerWithoutMicroversions() : await startServer(limits);
  try {
    await use(server);
  } finally {
    await server.close();
  }
}

/** Sends a request as a client from before microversions does. */
const oldClient = (url: string, init: RequestInit = {}) =>
  fetch(`${url}/resource_providers`, { ...init, headers: { 'X-Auth-Token': 'admin', ...init.headers } });

async function assertOldSession(url: string): Promise<Response> {
  const body = JSON.stringify({ name: 'host-1' });
  const created = await oldClient(url, { method: 'POST', body, headers: { 'Content-Type': 'application/json' } });
  assert.equal(created.status, 201);
  const listed = await oldClient(url);
  const { resource_providers } = (await listed.json()) as { resource_providers: object[] }; // by openapi.yaml
  assert.deepEqual(Object.keys(resource_providers[0] ?? {}).toSorted(), ['generation', 'links', 'name', 'uuid']);
  return listed;
}

const problem = (kind: VersionProblem, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof VersionError, String(error));
  assert.equal(error.problem, kind);
  assert.match(error.message, message);
  return true;
};

test('use case 1: an old client works with an old server as before', () =>
  withServer('without microversions', async ({ url }) => {
    const answer = await assertOldSession(url);
    assert.equal(answer.headers.get(versionHeader), null);
  }));

test('use case 2: an old client works with a new server at 1.0', () =>
  withServer({}, async ({ url }) => {
    const answer = await assertOldSession(url);
    assert.equal(answer.headers.get(versionHeader), 'placement 1.0');
    assert.equal(answer.headers.get('openstack-api-minimum-version'), 'placement 1.0');
    assert.equal(answer.headers.get('openstack-api-maximum-version'), 'placement 1.39');
  }));

test('use case 3A: with an old server a client without a named version continues at 1.0', () =>
  withServer('without microversions', async (server) => {
    const placement = connect({ endpoint: server.url, auth: 'admin' });
    assert.deepEqual(await placement.providers.list(), []);
    assert.deepEqual(requestedVersions(server), [`placement ${newestVersion}`]);
    const host = await placement.providers.create({ name: 'host-1' });
    assert.equal(host.name, 'host-1');
    assert.ok(!('parent_provider_uuid' in host));
    // Before a write it asks again: a proxy may have answered for a server that was unavailable.
    const [, ...later] = server.seen.map(({ method, url, headers }) => `${method} ${url} ${headers[versionHeader]}`);
    assert.deepEqual(later[0], `GET / placement ${newestVersion}`);
    assert.ok(later.length > 1 && later.slice(1).every((each) => each.endsWith('placement 1.0')), later.join());
    assert.equal((await placement.serverVersion()).version, '1.0');
    await assert.rejects(placement.traits.list(), problem('too old', /GET \/traits needs microversion 1\.6/));
  }));

test('use case 3A: the client finds this out before it writes', () =>
  withServer('without microversions', async (server) => {
    const placement = connect({ endpoint: server.url, auth: 'admin' });
    const uuid = 'c0ffee00-0000-4000-8000-000000000001';
    const claim = { project_id: 'p', user_id: 'u', consumer_generation: null, consumer_type: 'INSTANCE' };
    const host = await placement.providers.create({ name: 'host-1' });
    assert.deepEqual(
      server.seen.slice(0, 2).map(({ method, url }) => `${method} ${url}`),
      ['GET /', 'POST /resource_providers'],
    );
    await placement.inventories.set(host.uuid, {
      inventories: { VCPU: { total: 4 } },
      resource_provider_generation: host.generation,
    });
    await placement.allocations.set(uuid, { allocations: { [host.uuid]: { resources: { VCPU: 1 } } }, ...claim });
    assert.deepEqual((await placement.usages.ofProvider(host.uuid)).usages, { VCPU: 1 });
  }));

test('use case 3A: a filter that only a newer server has is refused', () =>
  withServer('without microversions', async ({ url }) => {
    const placement = connect({ endpoint: url, auth: 'admin' });
    const filtered = placement.providers.list({ resources: { VCPU: 1 } });
    await assert.rejects(filtered, problem('too old', /resources=VCPU:1 needs microversion 1\.4.*are at 1\.0/));
  }));

test('use case 3B: with an old server a client with a named version reports this and ends', () =>
  withServer('without microversions', async (server) => {
    const message = /http:\/\/127\.0\.0\.1:\d+ knows no microversions.*1\.20.*Name none/;
    const reader = connect({ endpoint: server.url, auth: 'admin', version: '1.20' });
    await assert.rejects(reader.providers.list(), problem('no microversions', message));
    const writer = connect({ endpoint: server.url, auth: 'admin', version: '1.20' });
    await assert.rejects(writer.providers.create({ name: 'host-1' }), problem('no microversions', message));
    assert.deepEqual(new Set(server.seen.map(({ method }) => method)), new Set(['GET']), 'nothing was written');
    const needy = connect({ endpoint: server.url, auth: 'admin', oldest: '1.1' });
    await assert.rejects(
      needy.providers.list(),
      problem('no microversions', new RegExp(`1\\.1 to ${newestVersion} as requested`)),
    );
  }));

test('use case 4: an invalid version is refused before anything is sent', () =>
  withServer({}, async (server) => {
    for (const version of ['spam', 'l33t', '1.2.3.4.5', '', '1', '1.', '1.040', '-1.2', ' 1.2', 'Latest']) {
      const open = () => connect({ endpoint: server.url, auth: 'admin', version });
      assert.throws(
        open,
        problem(
          'invalid',
          new RegExp(`is no microversion\\. Write 1\\.0 to 1\\.39, or 2\\.0 to ${newestVersion}, or latest\\.`),
        ),
        version,
      );
    }
    for (const version of ['1.40', '1.999', '2.999', '3.0', '0.9']) {
      const open = () => connect({ endpoint: server.url, auth: 'admin', version });
      assert.throws(
        open,
        problem(
          'invalid',
          new RegExp(`does not know microversion.*Choose one of 1\\.0 to 1\\.39, or 2\\.0 to ${newestVersion},`),
        ),
        version,
      );
    }
    assert.deepEqual(server.seen, []);
  }));

test('use case 5: a client that is older than every version of the server reports this', () =>
  withServer({ min: '1.8', max: '1.15' }, async (server) => {
    const placement = connect({ endpoint: server.url, auth: 'admin', oldest: '1.1', newest: '1.6' });
    const message =
      /speaks microversions 1\.8 to 1\.15, this client 1\.1 to 1\.6: none in common\. The client is too old/;
    await assert.rejects(placement.providers.list(), (error) => {
      assert.ok(error instanceof VersionError);
      assert.deepEqual(error.server, { min: '1.8', max: '1.15' });
      return problem('unsupported', message)(error);
    });
    assert.deepEqual(requestedVersions(server), ['placement 1.6']);
    await assert.rejects(placement.providers.create({ name: 'host-1' }), problem('unsupported', message));
    assert.deepEqual(new Set(requestedVersions(server)), new Set(['placement 1.6']), 'the write was refused');
  }));

test('use case 6: a client that is newer than every version of the server reports this', () =>
  withServer({ min: '1.1', max: '1.5' }, async (server) => {
    const placement = connect({ endpoint: server.url, auth: 'admin', oldest: '1.10', newest: '1.15' });
    const message =
      /speaks microversions 1\.1 to 1\.5, this client 1\.10 to 1\.15: none in common\. The server is too old/;
    await assert.rejects(placement.providers.list(), problem('unsupported', message));
    assert.deepEqual(requestedVersions(server), ['placement 1.15']);
  }));

/** Reads, reads again, and reads as another client of the same process. */
async function assertNegotiated(
  server: TestServer,
  open: () => Pick<Placement, 'providers'>,
  first: string,
  best: string,
): Promise<void> {
  const placement = open();
  assert.deepEqual(await placement.providers.list(), []);
  assert.deepEqual(requestedVersions(server), [first, best], 'it falls back once');
  await placement.providers.create({ name: 'host-1' });
  await open().providers.list();
  assert.deepEqual(new Set(requestedVersions(server).slice(2)), new Set([best]), 'it remembers');
}

test('use case 7A: a client without a named version falls back to the newest common version, and remembers it', () =>
  withServer({ min: '1.1', max: '1.10' }, async (server) => {
    const open = () => connect({ endpoint: server.url, auth: 'admin', oldest: '1.8', newest: '1.15' });
    await assertNegotiated(server, open, 'placement 1.15', 'placement 1.10');
  }));

test('use case 7A: with all versions that this client knows, and with a write as the first request', () =>
  withServer({ max: '1.30' }, async (server) => {
    const placement = connect({ endpoint: server.url, auth: 'admin' });
    const host = await placement.providers.create({ name: 'host-1' });
    assert.equal(host.root_provider_uuid, host.uuid);
    assert.deepEqual(requestedVersions(server), [`placement ${newestVersion}`, 'placement 1.30']);
    const anyOf = placement.providers.list({ required: ['in:HW_CPU_X86_VMX,HW_CPU_X86_SVM'] });
    await assert.rejects(
      anyOf,
      problem('too old', /needs microversion 1\.39.*Leave it out, or use a server that speaks/),
    );
    assert.equal(server.seen.length, 2);
  }));

test('use case 7B: a client with a named version does not fall back, and reports the range of the server', () =>
  withServer({ min: '1.1', max: '1.10' }, async (server) => {
    const placement = connect({ endpoint: server.url, auth: 'admin', version: '1.15' });
    const message = /speaks microversions 1\.1 to 1\.10, not 1\.15 as requested\. Name one of these, or none/;
    await assert.rejects(placement.providers.list(), problem('unsupported', message));
    await assert.rejects(placement.providers.create({ name: 'host-1' }), problem('unsupported', message));
    assert.deepEqual(new Set(requestedVersions(server)), new Set(['placement 1.15']));
    assert.deepEqual(await connect({ endpoint: server.url, auth: 'admin', version: '1.10' }).providers.list(), []);
  }));

test('a server that ends at a lower version 2 gets requests at that version', () =>
  withServer({ max: '2.3' }, async (server) => {
    const placement = connect({ endpoint: server.url, auth: 'admin' });
    const host = await placement.providers.create({ name: 'host-1' });
    assert.deepEqual(requestedVersions(server), [`placement ${newestVersion}`, 'placement 2.3']);
    assert.ok('etag' in host);
    assert.deepEqual(await placement.serverVersion(), { version: '2.3', min: '1.0', max: '2.3' });
    const followed = placement.changes().next();
    await assert.rejects(followed, problem('too old', /GET \/changes needs microversion 2\.5.*are at 2\.3/));
    const older = connect({ endpoint: server.url, auth: 'admin', newest: '1.30' });
    await older.providers.list();
    assert.deepEqual(
      requestedVersions(server).slice(-1),
      ['placement 1.30'],
      'a program for versions of OpenStack gets them',
    );
    await placement.providers.list();
    assert.deepEqual(requestedVersions(server).slice(-1), ['placement 2.3'], 'and the others go on with version 2');
  }));

test('a server of OpenStack gets requests of its newest version, and version 2 is not tried again', () =>
  withServer({ max: '1.39' }, async (server) => {
    const placement = connect({ endpoint: server.url, auth: 'admin' });
    await placement.providers.list();
    await placement.providers.create({ name: 'host-1' });
    assert.deepEqual(requestedVersions(server), [`placement ${newestVersion}`, 'placement 1.39', 'placement 1.39']);
    assert.deepEqual(await placement.serverVersion(), { version: '1.39', min: '1.0', max: '1.39' });
    for (const options of [{ version: '2.4' }, { oldest: '2.1' }] as const) {
      const newer = connect({ endpoint: server.url, auth: 'admin', ...options });
      await assert.rejects(
        newer.providers.create({ name: 'host-2' }),
        problem('unsupported', /speaks microversions 1\.0 to 1\.39/),
      );
    }
    assert.deepEqual((await placement.providers.list()).length, 1, 'nothing was written');
  }));

test('use case 8: a named version that the server speaks is used', () =>
  withServer({ min: '1.1', max: '1.12' }, async (server) => {
    const placement = connect({ endpoint: server.url, auth: 'admin', oldest: '1.8', newest: '1.10' });
    assert.deepEqual(await placement.serverVersion(), { version: '1.10', min: '1.1', max: '1.12' });
    await placement.providers.list();
    const named = connect({ endpoint: server.url, auth: 'admin', version: '1.10' });
    await named.providers.list();
    assert.deepEqual(requestedVersions(server), ['placement 1.10', 'placement 1.10', 'placement 1.10']);
    const { headers } = await named.call({ method: 'GET', path: '/resource_providers' });
    assert.equal(headers.get(versionHeader), 'placement 1.10');
  }));

test('use case 9: latest is the newest version of the server, and the client writes in its form', () =>
  withServer({ min: '1.1', max: '1.11' }, async (server) => {
    const placement = connect({ endpoint: server.url, auth: 'admin', version: 'latest' });
    const host = await placement.providers.create({ name: 'host-1' });
    assert.deepEqual(await placement.serverVersion(), { version: '1.11', min: '1.1', max: '1.11' });
    const { headers } = await placement.call({ method: 'GET', path: '/resource_providers' });
    assert.equal(headers.get(versionHeader), 'placement 1.11');
    assert.equal(headers.get('openstack-api-minimum-version'), 'placement 1.1');
    assert.equal(headers.get('openstack-api-maximum-version'), 'placement 1.11');
    assert.deepEqual(new Set(requestedVersions(server)), new Set(['placement latest']));
    const { inventories } = await placement.inventories.set(host.uuid, {
      inventories: { VCPU: { total: 4 } },
      resource_provider_generation: 0,
    });
    assert.equal(inventories.VCPU?.total, 4);
    // Allocations were a list up to 1.11.
    const claim = { project_id: 'p', user_id: 'u', consumer_generation: null, consumer_type: 'INSTANCE' };
    const consumer = 'c0ffee00-0000-4000-8000-000000000002';
    await placement.allocations.set(consumer, { allocations: { [host.uuid]: { resources: { VCPU: 1 } } }, ...claim });
    const { allocation_requests } = await placement.candidates({ resources: { VCPU: 1 } });
    assert.deepEqual(allocation_requests, [{ allocations: { [host.uuid]: { resources: { VCPU: 1 } } } }]);
  }));
