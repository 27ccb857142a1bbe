import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { connect, isConcurrentUpdate, isConflict, isNoCandidates, VersionError } from '../../src/client/index.ts';
import { mustFail, placement as run } from './command.ts';
import { startServer, type TestServer } from './servers.ts';

let server: TestServer;
before(async () => {
  server = await startServer();
});
after(() => server.close());

const open = () => connect({ endpoint: server.url, auth: 'admin', version: '2.4' });
const owner = { project_id: 'web', user_id: 'ada', consumer_generation: null, consumer_type: 'INSTANCE' } as const;

/** Makes hosts with so many units of a class of their own. @returns their UUIDs, and the class */
async function makeHosts(...totals: readonly number[]) {
  const placement = open();
  const name = `CUSTOM_C${randomUUID().replaceAll('-', '').toUpperCase()}`;
  await placement.resourceClasses.ensure(name);
  const hosts: string[] = [];
  for (const [place, total] of totals.entries()) {
    const { uuid } = await placement.providers.create({ name: `${name}-${place}` });
    await placement.inventories.set(uuid, { inventories: { [name]: { total } }, resource_provider_generation: 0 });
    hosts.push(uuid);
  }
  const [one = '', two = '', three = ''] = hosts;
  return { name, one, two, three };
}

test('a consumer is placed on the first host by order, and moved with its holdings freed', async () => {
  const { allocations } = open();
  const { name, one, two } = await makeHosts(4, 8);
  const consumer = randomUUID();
  const packed = await allocations.place(consumer, {
    candidates: { resources: { [name]: 4 }, order: [`free:${name}`] },
    ...owner,
  });
  assert.deepEqual(packed.allocations[one]?.resources, { [name]: 4 });
  assert.deepEqual(packed.mappings, { '': [one] });
  assert.equal(packed.consumer_generation, 1);
  assert.deepEqual({ ...packed, mappings: undefined }, { ...(await allocations.show(consumer)), mappings: undefined });

  const again = { ...owner, consumer_generation: packed.consumer_generation };
  const resized = await allocations.place(consumer, {
    candidates: [{ resources: { [name]: 9 } }, `resources=${name}:3&with=${consumer}`],
    ...again,
  });
  assert.deepEqual(resized.allocations[one]?.resources, { [name]: 3 }, 'in its tree, by the second query');
  const outdated = allocations.place(consumer, { candidates: { resources: { [name]: 1 } }, ...again });
  await assert.rejects(outdated, isConcurrentUpdate);
  assert.equal((await allocations.show(consumer)).allocations[two], undefined);
});

test('a claim that fits nowhere is distinguished from other conflicts', async () => {
  const { allocations } = open();
  const { name } = await makeHosts(4);
  const placed = allocations.place(randomUUID(), { candidates: { resources: { [name]: 5 } }, ...owner });
  await assert.rejects(
    placed,
    (error) => isNoCandidates(error) && isConflict(error) && error.detail.includes(`${name}:5`),
  );
});

test('a gang is placed as a whole or not at all', async () => {
  const { allocations } = open();
  const { name, one, two, three } = await makeHosts(2, 2, 2);
  const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()];
  const apart = (amount: number, ...others: readonly string[]) => ({
    candidates: { resources: { [name]: amount }, apart_from: others },
    ...owner,
  });
  const plain = { allocations: { [two]: { resources: { [name]: 1 } } }, ...owner };
  await assert.rejects(
    allocations.placeMany({ [first]: apart(2), [second]: plain, [third]: apart(3) }),
    isNoCandidates,
  );
  assert.deepEqual((await allocations.show(second)).allocations, {});

  const gang = { [first]: apart(2), [second]: plain, [third]: apart(1, first, second) };
  const tried = await allocations.placeMany(gang, { dryRun: true });
  assert.equal(Object.keys(tried).length, 3);
  assert.deepEqual((await allocations.show(first)).allocations, {}, 'nothing was written');

  const placed = await allocations.placeMany(gang);
  const hostsOf = (consumer: string) => Object.keys(placed[consumer]?.allocations ?? {});
  assert.deepEqual(hostsOf(second), [two]);
  assert.deepEqual([first, third].flatMap(hostsOf).sort(), [one, three].sort());
  assert.equal(placed[second]?.mappings, undefined);
  const emptied = { ...owner, consumer_generation: 1, allocations: {} };
  assert.deepEqual(await allocations.placeMany({ [first]: emptied }), {}, 'no consumer by query, no body');
});

test('a dry run of a plain claim checks it and writes nothing', async () => {
  const { allocations, reshape } = open();
  const { name, one } = await makeHosts(2);
  const consumer = randomUUID();
  const claim = (amount: number) => ({ allocations: { [one]: { resources: { [name]: amount } } }, ...owner });
  await allocations.set(consumer, claim(2), { dryRun: true });
  await allocations.setMany({ [consumer]: claim(2) }, { dryRun: true });
  await assert.rejects(allocations.set(consumer, claim(3), { dryRun: true }), isConflict);
  const inventories = { [one]: { inventories: { [name]: { total: 1 } }, resource_provider_generation: 1 } };
  await reshape({ inventories, allocations: { [consumer]: claim(1) } }, { dryRun: true });
  assert.deepEqual((await allocations.show(consumer)).allocations, {});
  assert.equal((await open().inventories.list(one)).inventories[name]?.total, 2);
});

test('an older server gets neither queries nor dry runs', async () => {
  const old = await startServer({ max: '2.3' });
  try {
    const { allocations } = connect({ endpoint: old.url, auth: 'admin' });
    const claim = { allocations: {}, ...owner };
    await assert.rejects(allocations.place(randomUUID(), { candidates: 'resources=VCPU:1', ...owner }), VersionError);
    await assert.rejects(allocations.set(randomUUID(), claim, { dryRun: true }), VersionError);
  } finally {
    await old.close();
  }
});

test('the command places a consumer, does a dry run, and prints why it fits nowhere', async () => {
  const { name, one, two } = await makeHosts(4, 8);
  const env = { OS_ENDPOINT: server.url, OS_TOKEN: 'admin' };
  const consumer = randomUUID();
  const place = (...args: readonly string[]) => run(['allocation', 'place', ...args], env);
  const query = [`${name}=3`, '--order', `-free:${name}`, '--consumer', consumer];

  const tried = await place(...query, '--project', 'web', '--dry-run');
  assert.equal(tried.code, 0, tried.stderr);
  assert.match(tried.stdout, new RegExp(`^Consumer ${consumer} would get this. Nothing was written.\n[^]*${two} `));
  assert.deepEqual((await open().allocations.show(consumer)).allocations, {});

  const placed = await place(...query, '--project', 'web', '--json');
  assert.equal(placed.code, 0, placed.stderr);
  const held = await open().allocations.show(consumer);
  const resource_providers = { [two]: { name: `${name}-1`, root: two } };
  const expected = { consumer, ...held, expires_at: null, name: null, mappings: { '': [two] }, resource_providers };
  assert.deepEqual(JSON.parse(placed.stdout), expected);
  assert.equal(held.user_id, 'web');

  const away = [`${name}=1`, '--apart-from', consumer, '--consumer', consumer, '--move'];
  const triedAway = await place(...away, '--dry-run');
  assert.match(triedAway.stdout, /would get this, in the place of what it has\. Nothing was written\.\n/);
  const moved = await place(...away);
  assert.match(moved.stdout, new RegExp(`${consumer} has this now, in the place of what it had.\n[^]*${one} `));

  await mustFail(
    new RegExp(`no tree meets resources=${name}:9[^]*It fits 0 of \\d+ trees[^]*has 8 left`),
    ['allocation', 'place', `${name}=9`, '--project', 'web'],
    env,
    'full',
  );
  await mustFail(/The consumer is new. Give the project/, ['allocation', 'place', `${name}=1`], env, 'wrongUsage');
  await mustFail(/Its keys are free:CLASS/, ['candidate', 'list', 'VCPU=1', '--order', 'used:VCPU'], env, 'wrongUsage');

  const listed = await run(
    ['candidate', 'list', `${name}=1`, '--order', `free:${name}`, '--with', consumer, '--json'],
    env,
  );
  assert.deepEqual(Object.keys(JSON.parse(listed.stdout).allocation_requests[0].allocations), [one]);
});
