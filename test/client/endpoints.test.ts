import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { routes } from '../../src/api/routes.ts';
import {
  type ApiError,
  connect,
  isByType,
  isNotFound,
  type Microversion,
  microversions,
  VersionError,
  versionNumber,
} from '../../src/client/index.ts';
import { startServer, type TestServer } from './servers.ts';

let server: TestServer;
before(async () => {
  server = await startServer();
});
after(() => server.close());

/**
 * Calls every method of the client at one version. Methods that the version lacks must be refused as too old (or too
 * new).
 */
async function doEverything(version: Microversion): Promise<void> {
  const placement = connect({ endpoint: server.url, auth: 'admin', version: version as string });
  const has = (since: Microversion): boolean => versionNumber(version) >= versionNumber(since);
  const from = async <Result>(
    since: Microversion,
    call: () => Promise<Result>,
    until?: Microversion,
  ): Promise<Result | undefined> => {
    if (has(since) && (until === undefined || versionNumber(version) <= versionNumber(until))) return call();
    await assert.rejects(call, (error) => error instanceof VersionError, `${since} at ${version}`);
    return undefined;
  };
  const name = `host ${version}/?#%`;
  const [consumer, other, aggregate] = [randomUUID(), randomUUID(), randomUUID()];
  const custom = `CUSTOM_V${versionNumber(version)}`;

  const host = await placement.providers.create({ name });
  assert.equal('root_provider_uuid' in host, has('1.14'));
  const child = await from('1.14', () =>
    placement.providers.create({ name: `${name} child`, parent_provider_uuid: host.uuid }),
  );
  assert.deepEqual(
    (await placement.providers.list({ name })).map(({ uuid }) => uuid),
    [host.uuid],
  );
  await placement.providers.update(host.uuid, { name: `${name}!` });
  assert.equal((await placement.providers.show(host.uuid)).name, `${name}!`);

  const generation = async () => (await placement.inventories.list(host.uuid)).resource_provider_generation;
  const inventories = { VCPU: { total: 8, allocation_ratio: 2 }, DISK_GB: { total: 100 } };
  await placement.inventories.set(host.uuid, { inventories, resource_provider_generation: await generation() });
  await placement.inventories.add(host.uuid, { resource_class: 'MEMORY_MB', total: 1024 });
  const memory = { total: 2048, resource_provider_generation: await generation() };
  await placement.inventories.replace(host.uuid, 'MEMORY_MB', memory);
  assert.equal((await placement.inventories.show(host.uuid, 'MEMORY_MB')).total, 2048);
  await placement.inventories.delete(host.uuid, 'MEMORY_MB');

  await from('1.2', () => placement.resourceClasses.create(custom));
  await from('1.2', () => placement.resourceClasses.show(custom));
  await from('1.2', () => placement.resourceClasses.rename(custom, `${custom}_NEW`), '1.6');
  assert.equal(
    await from('1.7', () => placement.resourceClasses.ensure(`${custom}_NEW`)),
    has('1.7') ? true : undefined,
  );
  assert.equal(
    (await from('1.2', () => placement.resourceClasses.list()))?.includes(`${custom}_NEW`),
    has('1.2') ? true : undefined,
  );
  await from('1.2', () => placement.resourceClasses.delete(`${custom}_NEW`));

  await from('1.6', () => placement.traits.ensure(custom));
  assert.deepEqual(
    await from('1.6', () => placement.traits.list({ name: `in:${custom}` })),
    has('1.6') ? [custom] : undefined,
  );
  assert.equal(await from('1.6', () => placement.traits.exists(custom)), has('1.6') ? true : undefined);
  const traits = { traits: [custom], resource_provider_generation: await generation() };
  await from('1.6', () => placement.providerTraits.set(host.uuid, traits));
  assert.deepEqual(
    (await from('1.6', () => placement.providerTraits.show(host.uuid)))?.traits,
    has('1.6') ? [custom] : undefined,
  );
  await from('1.6', () => placement.providerTraits.deleteAll(host.uuid));
  await from('1.6', () => placement.traits.delete(custom));

  const aggregates = { aggregates: [aggregate], resource_provider_generation: await generation() };
  await from('1.1', () => placement.aggregates.set(host.uuid, aggregates));
  const shown = await from('1.1', () => placement.aggregates.show(host.uuid));
  assert.deepEqual(shown?.aggregates, has('1.1') ? [aggregate] : undefined);
  assert.equal(shown?.resource_provider_generation !== undefined, has('1.19'));

  const found = await from('1.10', () => placement.candidates({ resources: { VCPU: 2 } }));
  assert.ok(
    !has('1.10') || found?.allocation_requests.some(({ allocations }) => allocations[host.uuid]?.resources.VCPU === 2),
  );
  const explained = await from('2.3', () =>
    placement.candidateQuestions.explain({
      resources: { VCPU: 2_000 },
      groups: { _A: { resources: { VCPU: 1 } } },
      nearest: 1,
    }),
  );
  if (explained !== undefined) {
    assert.deepEqual([explained.fitting, explained.nearest.length], [0, 1]);
    assert.equal(explained.conditions[1]?.parameter, 'resources_A');
  }
  const counted = await from('2.3', () =>
    placement.candidateQuestions.count({ resources: { VCPU: 2 }, max: 1, top: 0 }),
  );
  if (counted !== undefined) assert.deepEqual(counted, { count: 1, exact: false, trees: [] });
  const ordered = { resources: { VCPU: 2 }, order: ['-free:VCPU', 'random'], apart_from: [] } as const;
  await from('2.4', () => placement.candidates({ ...ordered, limit: 1 }));
  await from('1.33', () => placement.candidates({ groups: { _A: { resources: { VCPU: 1 } } }, limit: 1 }));

  const allocations = { [host.uuid]: { resources: { VCPU: 2 } } };
  const claim = { project_id: custom, user_id: 'u', consumer_generation: null, consumer_type: 'INSTANCE' };
  await placement.allocations.set(consumer, { allocations, ...claim });
  const held = await placement.allocations.show(consumer);
  assert.deepEqual(held.allocations[host.uuid]?.resources, { VCPU: 2 });
  const tried = await from('2.4', () =>
    placement.allocations.placeMany({ [other]: { candidates: ordered, ...claim } }, { dryRun: true }),
  );
  assert.equal(tried?.[other]?.consumer_generation, has('2.4') ? 1 : undefined);
  await from('2.4', () => placement.allocations.place(other, { candidates: ordered, ...claim }, { dryRun: true }));
  assert.equal(held.consumer_type, has('1.38') ? 'INSTANCE' : undefined);
  assert.deepEqual((await placement.providers.allocations(host.uuid)).allocations[consumer]?.resources, { VCPU: 2 });
  assert.equal((await placement.usages.ofProvider(host.uuid)).usages.VCPU, 2);
  const used = await from('1.9', () => placement.usages.ofProject({ project_id: custom }));
  if (used !== undefined) {
    assert.equal(isByType(used), has('1.38'));
    assert.deepEqual(isByType(used) ? used.INSTANCE : used, { VCPU: 2, ...(has('1.38') ? { consumer_count: 1 } : {}) });
  }
  await from('1.13', () => placement.allocations.setMany({ [other]: { allocations, ...claim } }));
  const ofProject = await from('2.2', () =>
    placement.consumers.page({ project_id: custom, resource_provider: host.uuid }),
  );
  assert.deepEqual(
    ofProject?.map(({ uuid }) => uuid).toSorted(),
    has('2.2') ? [consumer, other].toSorted() : undefined,
  );
  const holdings = await from('2.9', () => placement.holdings.page({ project_id: custom, resource_class: 'VCPU' }));
  assert.deepEqual(
    holdings?.map(({ consumer: uuid, resources }) => [uuid, resources]).toSorted(),
    has('2.9') ? [consumer, other].toSorted().map((uuid) => [uuid, { VCPU: 2 }]) : undefined,
  );
  const totals = await from('2.9', () => placement.usageRecords.totals(['project_id'], { project_id: custom }));
  assert.deepEqual(totals, has('2.9') ? [] : undefined, 'the history is off');
  const records = await from('2.9', () => Array.fromAsync(placement.usageRecords.list({ project_id: custom })));
  assert.deepEqual(records, has('2.9') ? [] : undefined);
  const known = await from('2.2', () => placement.consumers.show(consumer));
  const given = await from('2.2', () =>
    placement.consumers.set(consumer, { ...(known ?? {}), ...claim, user_id: 'v', consumer_generation: 1 }),
  );
  assert.equal(given?.user_id, has('2.2') ? 'v' : undefined);
  const term = { expires_in: 3600, consumer_generation: given?.consumer_generation ?? 0 };
  const renewed = await from('2.6', () => placement.consumers.setTerm(consumer, term));
  const expiring = await from('2.6', () =>
    placement.consumers.page({ project_id: custom, expiring_before: new Date(Date.now() + 4_000_000) }),
  );
  assert.deepEqual(
    expiring?.map(({ uuid, expires_at }) => [uuid, expires_at]),
    renewed && [[consumer, renewed.expires_at]],
  );
  const made = await from('2.7', () =>
    placement.tokens.create({ user_id: 'u', project_id: custom, roles: ['member'] }),
  );
  const tokens = await from('2.7', () => placement.tokens.page({ project_id: custom }));
  assert.deepEqual(
    tokens?.map(({ id }) => id),
    made && [made.id],
  );
  await from('2.7', () => placement.tokens.delete(made?.id ?? 'none'));
  const limited = await from('2.7', () => placement.limits.set(custom, { resources: { VCPU: 100 }, generation: null }));
  assert.deepEqual(limited?.resources, has('2.7') ? { VCPU: { limit: 100, used: 4, from: 'project' } } : undefined);
  assert.deepEqual(await from('2.7', () => placement.limits.show(custom)), limited);
  assert.deepEqual(await from('2.7', () => placement.limits.page({ limit: 1 })), limited && [limited]);
  await from('2.7', () => placement.limits.set(custom, { ...limited, generation: 1 }));
  await from('2.7', () => placement.limits.delete(custom, { generation: 2 }));
  const defaults = await from('2.7', () => placement.limits.showDefaults());
  assert.deepEqual(defaults, has('2.7') ? { resources: {}, consumers: {}, generation: null } : undefined);
  await from('2.7', () => placement.limits.setDefaults({ consumers: { all: 1_000 }, generation: null }));
  await from('2.7', () => placement.limits.deleteDefaults());
  const waited = await from('2.8', () =>
    placement.allocations.place(other, { candidates: ordered, ...claim, consumer_generation: 1 }, { waitMs: 1_000 }),
  );
  assert.equal(waited?.consumer_generation, has('2.8') ? 2 : undefined);
  assert.deepEqual(
    await from('2.8', () => placement.waiting.page({ project_id: custom })),
    has('2.8') ? [] : undefined,
  );
  const removed = await from('2.8', () => placement.waiting.remove(other).catch(notFoundOf));
  assert.equal(removed?.status, has('2.8') ? 404 : undefined);
  const whole = await from('2.2', () => placement.providerSummaries.page({ uuids: [host.uuid] }));
  assert.equal(whole?.[0]?.usages.VCPU, has('2.2') ? 4 : undefined);
  const following = placement.changes();
  const change = await from('2.5', () => following.next());
  assert.equal(change?.done === false && 'everything' in change.value, has('2.5'));
  await following.return();
  const reshaped = { [host.uuid]: { inventories, resource_provider_generation: await generation() } };
  await from('1.30', () => placement.reshape({ inventories: reshaped, allocations: {} }));
  await placement.allocations.delete(consumer);
  if (has('1.13')) await placement.allocations.delete(other);
  assert.deepEqual((await placement.allocations.show(consumer)).allocations, {});

  await from('1.5', () => placement.inventories.deleteAll(host.uuid));
  if (child !== undefined) await placement.providers.delete(child.uuid);
  await placement.providers.delete(host.uuid);
  await assert.rejects(placement.providers.show(host.uuid), isNotFound);
}

/** The error of a call that found nothing. @throws any other error */
function notFoundOf(error: unknown): ApiError {
  if (isNotFound(error)) return error;
  throw error;
}

for (const version of microversions) {
  test(`at ${version} every method works, or reports that the version lacks it`, () => doEverything(version));
}

/** Asserts that each call is refused with a TypeError, and that no request was sent. */
async function areRefusedUnsent(asks: readonly (() => Promise<unknown>)[], message: RegExp): Promise<void> {
  const seen = server.seen.length;
  for (const ask of asks)
    await assert.rejects(ask, (error) => error instanceof TypeError && message.test(error.message));
  assert.equal(server.seen.length, seen);
}

test('a name that a URL cannot have is refused, and no other path is asked', async () => {
  const { traits, limits, consumers, call } = connect({ endpoint: server.url, auth: 'admin' });
  const asks = [
    () => traits.exists('..'),
    () => limits.show('.'),
    () => limits.delete('..'),
    () => consumers.show('..'),
    ...[
      '/traits/../resource_classes',
      '/traits/%2e%2E/resource_classes',
      '/traits/.%2e',
      '/traits/%2e?limit=1',
      '/traits/..#limits',
      '/traits\\..\\resource_classes',
    ].map((path) => () => call({ method: 'GET', path })),
  ];
  await areRefusedUnsent(asks, /a part of a path is neither/);
  for (const name of ['..CUSTOM_A', '%2e%2e', '..\\']) assert.equal(await traits.exists(name), false);
  const { status } = await call({ method: 'GET', path: '/resource_providers?name=/../' });
  assert.equal(status, 200, 'a query may have them');
});

test('an empty name is refused, and no other path is asked', async () => {
  const { traits, resourceClasses, limits, providers, inventories, call } = connect({
    endpoint: server.url,
    auth: 'admin',
  });
  const asks = [
    () => traits.delete(''),
    () => resourceClasses.show(''),
    () => limits.show(''),
    () => providers.show(''),
    () => inventories.list(''),
    () => call({ method: 'GET', path: '/traits/?limit=1' }),
    () => call({ method: 'GET', path: '//traits' }),
  ];
  await areRefusedUnsent(asks, /^A name in the path .* is empty\.$/);
  for (const path of ['/', '/?a=//', '/resource_providers?name=//'])
    assert.equal((await call({ method: 'GET', path })).status, 200, path);
});

test('a name with half of a surrogate pair, which has no encoding, rejects the promise of each call', async () => {
  const { traits, resourceClasses, providers, inventories, limits, call } = connect({
    endpoint: server.url,
    auth: 'admin',
  });
  const [seen, half] = [server.seen.length, 'CUSTOM_\ud800'];
  const asked: readonly Promise<unknown>[] = [
    traits.exists(half),
    traits.ensure(half),
    traits.delete(half),
    resourceClasses.show(half),
    providers.show(half),
    inventories.list(half),
    limits.show(half),
    call({ method: 'GET', path: `/traits/${half}` }),
  ];
  for (const answer of await Promise.allSettled(asked))
    assert.match(String('reason' in answer && answer.reason), /^TypeError: .*: it has half of a surrogate pair\.$/);
  assert.equal(server.seen.length, seen);
});

test('every endpoint of the service is called by a method of the client', () => {
  const called = new Set(
    server.seen.flatMap(({ method, url }) => {
      const path = url.split('?')[0] ?? '';
      return routes
        .filter((route) => route.method === method && pattern(route.path).test(path))
        .map((route) => `${route.method} ${route.path}`);
    }),
  );
  called.add('GET /'); // by negotiation.test.ts
  assert.deepEqual(
    [...new Set(routes.map(({ method, path }) => `${method} ${path}`))].filter((one) => !called.has(one)),
    [],
  );
});

const pattern = (path: string): RegExp => new RegExp(`^${path.replaceAll(/:[a-z_]+(?:\{[^}]*\})?/g, '[^/]+')}$`);
