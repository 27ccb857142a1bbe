import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { connect, isConflict, isPreconditionFailed, retryConflicts, VersionError } from '../../src/client/index.ts';
import { startServer, type TestServer } from './servers.ts';

let server: TestServer;
before(async () => {
  server = await startServer();
});
after(() => server.close());

const tag = /^W\/"[0-9a-f]{128}"$/;
const newest = () => connect({ endpoint: server.url, auth: 'admin', version: '2.1' });
const owner = { project_id: 'p', user_id: 'u', consumer_type: 'INSTANCE' };

/** Makes a host with inventories of two classes. @returns its UUID and name */
async function makeHost(): Promise<{ readonly uuid: string; readonly name: string }> {
  const placement = newest();
  const { uuid, name } = await placement.providers.create({ name: randomUUID() });
  const inventories = { VCPU: { total: 8 }, DISK_GB: { total: 100 } };
  await placement.inventories.set(uuid, { inventories, resource_provider_generation: 0 });
  return { uuid, name };
}

test('resources that can be changed have a tag in their type, and each write checks it', async () => {
  const placement = newest();
  const { uuid } = await makeHost();
  await placement.traits.ensure('CUSTOM_TAGGED');
  await placement.resourceClasses.ensure('CUSTOM_TAGGED');
  const consumer = randomUUID();
  const claim = { allocations: { [uuid]: { resources: { VCPU: 1 } } }, ...owner };
  await placement.allocations.set(consumer, { ...claim, consumer_generation: null });

  const provider = await placement.providers.show(uuid);
  const inventories = await placement.inventories.list(uuid);
  const disk = await placement.inventories.show(uuid, 'DISK_GB');
  const traits = await placement.providerTraits.show(uuid);
  const aggregates = await placement.aggregates.show(uuid);
  const held = await placement.allocations.show(consumer);
  const tags: readonly string[] = [provider.etag, inventories.etag, disk.etag, traits.etag, aggregates.etag];
  for (const etag of [...tags, held.etag ?? '']) assert.match(etag, tag);
  assert.equal(inventories.inventories.DISK_GB?.etag, disk.etag);
  assert.equal((await placement.providers.list({ uuid }))[0]?.etag, provider.etag);
  assert.match((await placement.resourceClasses.show('CUSTOM_TAGGED')).etag ?? '', tag);

  const ifMatch = 'W/"0123"';
  const conditions = { ifMatch };
  const { providers, inventories: stock, providerTraits, allocations, resourceClasses } = placement;
  const writes: readonly (() => Promise<unknown>)[] = [
    () => providers.update(uuid, provider, conditions),
    () => providers.delete(uuid, conditions),
    () => stock.set(uuid, inventories, conditions),
    () => stock.add(uuid, { resource_class: 'MEMORY_MB', total: 1 }, conditions),
    () => stock.replace(uuid, 'DISK_GB', { total: 1, resource_provider_generation: provider.generation }, conditions),
    () => stock.delete(uuid, 'DISK_GB', conditions),
    () => stock.deleteAll(uuid, conditions),
    () => providerTraits.set(uuid, traits, conditions),
    () => providerTraits.deleteAll(uuid, conditions),
    () => placement.aggregates.set(uuid, aggregates, conditions),
    () => allocations.set(consumer, { ...claim, consumer_generation: 1 }, conditions),
    () => allocations.setMany({ [consumer]: { ...claim, consumer_generation: 1 } }, conditions),
    () => allocations.delete(consumer, conditions),
    () => placement.reshape({ inventories: { [uuid]: inventories }, allocations: {} }, conditions),
    () => placement.traits.delete('CUSTOM_TAGGED', conditions),
    () => resourceClasses.delete('CUSTOM_TAGGED', conditions),
  ];
  for (const write of writes) await assert.rejects(write, isPreconditionFailed);
  assert.deepEqual(await placement.providers.show(uuid), provider);
  assert.deepEqual(await placement.allocations.show(consumer), held);

  const renamed = await providers.update(uuid, { ...provider, name: `${provider.name}-2` }, { ifMatch: provider.etag });
  assert.notEqual(renamed.etag, provider.etag);
  await providers.update(uuid, renamed, { ifMatch: [provider.etag, renamed.etag] });
  await placement.allocations.delete(consumer, { ifMatch: held.etag });
  await providers.delete(uuid, { ifMatch: '*' });
});

test('a lost update is a conflict, and reading again resolves it', async () => {
  const placement = newest();
  const { uuid } = await makeHost();
  let attempts = 0;
  const add = (suffix: string) =>
    retryConflicts(async () => {
      attempts += 1;
      const { name, etag } = await placement.providers.show(uuid);
      await placement.providers.update(uuid, { name: `${name}${suffix}` }, { ifMatch: etag });
    });
  await Promise.all(['a', 'b', 'c', 'd'].map(add));
  const { name } = await placement.providers.show(uuid);
  assert.deepEqual([...name.slice(36)].sort(), ['a', 'b', 'c', 'd']);
  assert.ok(attempts >= 4);
  await assert.rejects(placement.providers.update(uuid, { name }, { ifMatch: '"' }), (error) => !isConflict(error));
});

test('if the server does not speak 2.1, a write with a condition is not sent', async () => {
  const older = await startServer({ max: '1.39' });
  try {
    const named = connect({ endpoint: older.url, auth: 'admin', version: '1.39' });
    const host = await named.providers.create({ name: 'host' });
    // @ts-expect-error: tags came with 2.1
    assert.equal(host.etag, undefined);
    for (const version of [undefined, '1.39', 'latest']) {
      const placement = connect({ endpoint: older.url, auth: 'admin', version });
      const update = placement.providers.update(host.uuid, { name: 'other' }, { ifMatch: '*' });
      await assert.rejects(update, (error) => {
        assert.ok(error instanceof VersionError);
        assert.match(error.message, /^ifMatch needs microversion 2\.1/);
        return true;
      });
    }
    assert.equal((await named.providers.show(host.uuid)).name, 'host');
  } finally {
    await older.close();
  }
});
