/** Answers that are not of the service: a maintenance page, a default backend, a login page, Keystone that is overloaded. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { ApiError, connect, keystone, PlacementError, VersionError } from '../../src/client/index.ts';
import { forgetServers } from '../../src/client/version_request.ts';
import { forward, startFront, startServer } from './servers.ts';

type Page = 'none' | 'maintenance' | 'default backend';

/** Calls back with a service behind a proxy that answers a page of its own instead, if one is chosen. */
async function behindProxy(use: (url: string, show: (page: Page) => void) => Promise<void>): Promise<void> {
  forgetServers();
  const server = await startServer();
  let shown: Page = 'none';
  const front = await startFront((incoming, response) => {
    if (shown === 'none') return forward(server.url, incoming, response);
    response
      .writeHead(shown === 'maintenance' ? 200 : 404, { 'content-type': 'text/html' })
      .end(`<html>${shown}</html>`);
  });
  try {
    await use(front.url, (page) => {
      shown = page;
    });
  } finally {
    await front.close();
    await server.close();
  }
}

test('after the page of a proxy a claim is still guarded, and has its project', () =>
  behindProxy(async (endpoint, show) => {
    const placement = connect({ endpoint, auth: 'admin' });
    const { uuid } = await placement.providers.create({ name: 'host-1' });
    const inventories = { VCPU: { total: 8 } };
    await placement.inventories.set(uuid, { resource_provider_generation: 0, inventories });
    const claim = {
      allocations: { [uuid]: { resources: { VCPU: 1 } } },
      project_id: 'web',
      user_id: 'ada',
      consumer_type: 'JOB',
    };
    const consumer = randomUUID();
    await placement.allocations.set(consumer, { ...claim, consumer_generation: null });
    for (const page of ['maintenance', 'default backend'] as const) {
      show(page);
      await assert.rejects(placement.providers.list(), PlacementError);
      show('none');
      const stale = placement.allocations.set(consumer, { ...claim, consumer_generation: 77 });
      await assert.rejects(stale, (error) => error instanceof ApiError && error.status === 409);
      show(page);
      await assert.rejects(placement.providers.list(), PlacementError);
      show('none');
      const next = randomUUID();
      await placement.allocations.set(next, { ...claim, consumer_generation: null });
      assert.equal((await placement.consumers.show(next)).project_id, 'web');
    }
  }));

test('a client whose first answer is that of a default backend works as soon as the service answers', () =>
  behindProxy(async (endpoint, show) => {
    const placement = connect({ endpoint, auth: 'admin' });
    show('default backend');
    await assert.rejects(placement.consumers.page(), VersionError);
    show('none');
    assert.deepEqual(await placement.consumers.page(), []);
    const changes = placement.changes();
    assert.ok('everything' in ((await changes.next()).value ?? {}));
    await changes.return?.(undefined);
  }));

test('a client keeps following changes if Keystone is overloaded while the token is renewed', async () => {
  forgetServers();
  const server = await startServer();
  let logins = 0;
  const front = await startFront((_incoming, response) => {
    logins += 1;
    if (logins === 2) return void response.writeHead(503, { 'Retry-After': '1' }).end('busy');
    response.writeHead(201, { 'content-type': 'application/json', 'x-subject-token': 'admin' });
    const expiresAt = new Date(Date.now() + 61_500).toISOString();
    response.end(JSON.stringify({ token: { expires_at: expiresAt, catalog: [] } }));
  });
  try {
    const credentials = { method: 'password', user: { name: 'nova' }, password: 'x' } as const;
    const placement = connect({ endpoint: server.url, auth: keystone({ authUrl: front.url, credentials }) });
    const changes = placement.changes({ waitSeconds: 1 });
    await changes.next();
    const following = changes.next();
    following.catch(() => {}); // it is awaited below
    while (logins < 3) await Promise.race([following, new Promise((resolve) => setTimeout(resolve, 50))]);
    await placement.providers.create({ name: 'host-1' });
    assert.ok('resource_provider' in ((await following).value ?? {}));
    await changes.return?.(undefined);
  } finally {
    await front.close();
    await server.close();
  }
});

test('a write that a browser sees redirected is not done', async () => {
  forgetServers();
  // As the Fetch standard shows a redirect that is not followed: status 0, and no body.
  const placement = connect({ endpoint: 'http://127.0.0.1:1', auth: 'admin', fetch: async () => Response.error() });
  await assert.rejects(placement.providers.delete(randomUUID()), PlacementError);
});

test('a deadline may be a fraction of a millisecond, or over', () =>
  behindProxy(async (endpoint) => {
    assert.deepEqual(await connect({ endpoint, auth: 'admin', deadlineMs: 60_000.5 }).consumers.page(), []);
    await assert.rejects(connect({ endpoint, auth: 'admin', deadlineMs: -1 }).consumers.page(), PlacementError);
  }));
