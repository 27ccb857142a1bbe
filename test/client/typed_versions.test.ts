import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect } from '../../src/client/index.ts';
import { startServer, type TestServer } from './servers.ts';

/*
 * What the compiler knows about versions. `npm run check` fails if a "ts-expect-error" is not an error. The tests show
 * that the server agrees.
 */

let server: TestServer;
before(async () => {
  server = await startServer();
});
after(() => server.close());

test('with a named version the type has exactly the fields of this version', async () => {
  const newest = connect({ endpoint: server.url, auth: 'admin', version: '1.39' });
  const host = await newest.providers.create({ name: 'host-1' });
  const root: string = host.root_provider_uuid;
  assert.equal(root, host.uuid);
  const usages = await newest.usages.ofProject({ project_id: 'nobody' });
  assert.equal(usages.INSTANCE?.consumer_count, undefined);

  const old = connect({ endpoint: server.url, auth: 'admin', version: '1.10' });
  const same = await old.providers.show(host.uuid);
  // @ts-expect-error: trees came with 1.14
  assert.equal(same.root_provider_uuid, undefined);
  // @ts-expect-error: and so did parents
  await assert.rejects(old.providers.create({ name: 'child', parent_provider_uuid: host.uuid }), /1\.14/);
  const flat = await old.usages.ofProject({ project_id: 'nobody' });
  const vcpus: number | undefined = flat.VCPU;
  assert.equal(vcpus, undefined);
});

test('with an oldest version fields are required if all versions from it on have them, and else optional', async () => {
  const placement = connect({ endpoint: server.url, auth: 'admin', oldest: '1.20' });
  const host = await placement.providers.create({ name: 'host-2' });
  const root: string = host.root_provider_uuid;
  assert.equal(root, host.uuid);
  const found = await placement.candidates({ resources: { VCPU: 1 } });
  const mappings: readonly (object | undefined)[] = found.allocation_requests.map((one) => one.mappings);
  // @ts-expect-error: mappings came with 1.34 only
  const certain: readonly object[] = found.allocation_requests.map((one) => one.mappings);
  assert.deepEqual(mappings, certain);
});

test('a claim needs all fields that one of the possible versions requires', async () => {
  const uuid = 'c0ffee00-0000-4000-8000-000000000003';
  const owner = { project_id: 'p', user_id: 'u' };
  const negotiated = connect({ endpoint: server.url, auth: 'admin' });
  // @ts-expect-error: negotiation may result in 1.28 or 1.38
  await assert.rejects(negotiated.allocations.set(uuid, { allocations: {}, ...owner }), /consumer_generation/);
  const old = connect({ endpoint: server.url, auth: 'admin', version: '1.8' });
  // @ts-expect-error: 1.8 has no generations of consumers
  await assert.rejects(old.allocations.set(uuid, { allocations: {}, ...owner, consumer_generation: null }), /400/);
  // @ts-expect-error: a version that is none is no version
  assert.throws(() => connect({ endpoint: server.url, auth: 'admin', oldest: '1.45' }), /does not know/);
});
