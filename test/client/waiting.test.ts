/** Claims that wait, by the client and by the command, with a real service. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { after, before, test } from 'node:test';
import {
  ApiError,
  connect,
  isNoCandidates,
  isNotFound,
  type PlacingOptions,
  VersionError,
} from '../../src/client/index.ts';
import { until } from '../support/until.ts';
import { cells, commandsOn, hostedPlacement } from './command.ts';
import { forward, startFront, startServer, type TestServer } from './servers.ts';

let server: TestServer;
before(async () => {
  server = await startServer();
});
after(() => server.close());

const commands = commandsOn(() => server);
const open = (endpoint = server.url) => connect({ endpoint, auth: 'admin', oldest: '2.4' });
const waitMs = 60_000;

/** A project, and a host with so many units of a class of their own. */
async function makeRoom(total: number, endpoint = server.url) {
  const placement = open(endpoint);
  const { allocations, waiting } = placement;
  const name = `CUSTOM_C${randomUUID().replaceAll('-', '').toUpperCase()}`;
  const project = name.toLowerCase();
  await placement.resourceClasses.ensure(name);
  const { uuid } = await placement.providers.create({ name });
  await placement.inventories.set(uuid, { inventories: { [name]: { total } }, resource_provider_generation: 0 });
  const claim = (amount: number) => ({
    candidates: `resources=${name}:${amount}`,
    project_id: project,
    user_id: 'ada',
    consumer_generation: null,
    consumer_type: 'JOB',
  });
  const place = (amount: number, options?: PlacingOptions, consumer = randomUUID()) => {
    const placed = allocations.place(consumer, claim(amount), options);
    placed.catch(() => {}); // what it is refused with is looked at later
    return { consumer, placed };
  };
  /** Waits until these consumers wait, in this order. @returns their claims */
  const waitFor = async (...consumers: readonly string[]) => {
    let found: Awaited<ReturnType<typeof waiting.page>> = [];
    await until('the claims wait', async () => {
      found = await Array.fromAsync(waiting.list({ project_id: project }));
      return found.map((one) => one.consumers.join()).join() === consumers.join();
    });
    return found;
  };
  return { ...placement, name, project, host: uuid, claim, place, waitFor };
}

test('a claim waits until there is room', async () => {
  const { allocations, host, name, project, place, waitFor } = await makeRoom(2);
  const first = place(2, { waitMs });
  assert.deepEqual((await first.placed).allocations[host]?.resources, { [name]: 2 }, 'it fits at once');
  const second = place(1, { waitMs });
  const [{ number: _, since, until: end, condition, ...claim } = assert.fail()] = await waitFor(second.consumer);
  assert.deepEqual(claim, {
    consumers: [second.consumer],
    names: [null],
    project_id: project,
    user_id: 'ada',
    line: null,
    place: 1,
    waits_for: 'room',
  });
  assert.ok(Math.abs(Date.parse(end) - Date.parse(since) - waitMs) <= 1_000, `${since} to ${end}`);
  assert.match(condition, new RegExp(`${name}:1`));
  await allocations.delete(first.consumer);
  assert.deepEqual((await second.placed).allocations[host]?.resources, { [name]: 1 });
  await waitFor();
});

test('a claim whose wait ends without a place is refused as one that does not wait', async () => {
  const { place, allocations, claim } = await makeRoom(1);
  await assert.rejects(place(2, { waitMs: 1_000 }).placed, isNoCandidates);
  const gang = { [randomUUID()]: claim(1), [randomUUID()]: claim(1) };
  await assert.rejects(allocations.placeMany(gang, { waitMs: 1_000 }), isNoCandidates);
  await assert.rejects(place(2, { line: 'gpu' }).placed, (error) => error instanceof ApiError && error.status === 400);
});

test('a gang waits as one', async () => {
  const { place, allocations, claim, waitFor } = await makeRoom(2);
  const holder = place(1);
  await holder.placed;
  const [first, second] = [randomUUID(), randomUUID()];
  const placed = allocations.placeMany({ [first]: claim(1), [second]: claim(1) }, { waitMs, line: 'gpu' });
  placed.catch(() => {});
  const waits = () => Array.fromAsync(open().waiting.list({ project_id: claim(1).project_id, line: 'gpu' }));
  await until('it waits', async () => (await waits()).length === 1);
  const [only] = await waits();
  assert.deepEqual(only?.consumers.toSorted(), [first, second].toSorted());
  await allocations.delete(holder.consumer);
  assert.deepEqual(Object.keys(await placed).toSorted(), [first, second].toSorted());
  await waitFor();
});

test('the claims of a line are placed one after the other, and the next one is placed when the first one ends', async () => {
  const { place, waitFor, waiting } = await makeRoom(2);
  await place(1).placed;
  const large = place(2, { waitMs, line: 'gpu' });
  await waitFor(large.consumer);
  const small = place(1, { waitMs, line: 'gpu' });
  const claims = await waitFor(large.consumer, small.consumer);
  assert.deepEqual(
    claims.map((one) => [one.line, one.place, one.waits_for]),
    [
      ['gpu', 1, 'room'],
      ['gpu', 2, 'line'],
    ],
  );
  await waiting.remove(large.consumer);
  await assert.rejects(large.placed, isNoCandidates);
  assert.equal((await small.placed).consumer_generation, 1);
  await assert.rejects(waiting.remove(small.consumer), isNotFound);
});

test('a claim waits until its project has less than its limit', async () => {
  const { place, waitFor, limits, allocations, project, name } = await makeRoom(4);
  await limits.set(project, { resources: { [name]: 2 }, generation: null });
  const first = place(2);
  await first.placed;
  const second = place(1, { waitMs });
  assert.equal((await waitFor(second.consumer))[0]?.waits_for, 'limit');
  await allocations.delete(first.consumer);
  await second.placed;
  await assert.rejects(place(2, { waitMs: 1_000 }).placed, (error) => {
    return error instanceof ApiError && error.code === 'placement.limit_exceeded';
  });
});

test('a signal ends the wait, and the claim is not written', async () => {
  const { place, waitFor, allocations } = await makeRoom(1);
  const holder = place(1);
  await holder.placed;
  const controller = new AbortController();
  const reason = new Error('enough');
  const { consumer, placed } = place(1, { waitMs, signal: controller.signal });
  await waitFor(consumer);
  controller.abort(reason);
  await assert.rejects(placed, reason);
  await waitFor();
  await allocations.delete(holder.consumer);
  assert.deepEqual((await allocations.show(consumer)).allocations, {});
});

test('a claim whose connection is lost keeps its place', async () => {
  const claims: IncomingMessage[] = [];
  const front = await startFront((incoming, response) => {
    if (incoming.method === 'PUT' && incoming.headers.prefer !== undefined) claims.push(incoming);
    forward(server.url, incoming, response);
  });
  try {
    const { place, waitFor, allocations } = await makeRoom(1, front.url);
    const holder = place(1);
    await holder.placed;
    const first = place(1, { waitMs, line: 'gpu' });
    const [before] = await waitFor(first.consumer);
    const second = place(1, { waitMs, line: 'gpu' });
    await waitFor(first.consumer, second.consumer);
    claims[0]?.socket.destroy();
    await until('it asks again', () => claims.length === 3);
    const [after] = await waitFor(first.consumer, second.consumer);
    assert.deepEqual([after?.since, after?.place], [before?.since, 1]);
    await allocations.delete(holder.consumer);
    await first.placed;
    await allocations.delete(first.consumer);
    await second.placed;
  } finally {
    await front.close();
  }
});

test('no wait is requested from an older server', async () => {
  const old = await startServer({ max: '2.7' });
  try {
    const { allocations, waiting } = open(old.url);
    const placing = {
      candidates: 'resources=VCPU:1',
      project_id: 'ci',
      user_id: 'ada',
      consumer_generation: null,
      consumer_type: 'JOB',
    };
    const tooOld = (error: unknown) => error instanceof VersionError && /needs microversion 2\.8/.test(error.message);
    await assert.rejects(allocations.place(randomUUID(), placing, { waitMs }), tooOld);
    await assert.rejects(allocations.placeMany({ [randomUUID()]: placing }, { waitMs, line: 'gpu' }), tooOld);
    await assert.rejects(allocations.place(randomUUID(), placing, { line: 'gpu' }), tooOld);
    await assert.rejects(waiting.list().next(), tooOld);
    await assert.rejects(waiting.remove(randomUUID()), tooOld);
  } finally {
    await old.close();
  }
});

test('the command places a claim that waits, lists those that wait, and ends one', async () => {
  const { place, waitFor, name, project, allocations } = await makeRoom(1);
  const holder = place(1);
  await holder.placed;
  const waits = place(1, { waitMs, line: 'gpu' });
  await waitFor(waits.consumer);
  const rows = async (...args: readonly string[]) => cells(await commands.run('waiting', 'list', ...args));
  const [[consumers, ...about] = []] = await rows('--project', project, '--line', 'gpu');
  assert.deepEqual([consumers, ...about.slice(0, 4), about[6]], [waits.consumer, project, 'ada', 'gpu', '1', 'room']);
  assert.deepEqual(await rows('--project', project, '--line', 'cpu'), []);
  const [listed] = JSON.parse(await commands.run('waiting', 'list', '--project', project, '--json'));
  assert.deepEqual(listed.consumers, [waits.consumer]);
  assert.match(await commands.run('waiting', 'delete', waits.consumer), /waits no more/);
  await assert.rejects(waits.placed, isNoCandidates);
  await commands.fails('wrongInput', /No claim of consumer \S+ waits/, ['waiting', 'delete', waits.consumer]);

  const args = ['allocation', 'place', `${name}=1`, '--project', project, '--wait', '1m', '--line', 'gpu'];
  const ended = hostedPlacement(args, commands.env());
  await until(
    'it waits',
    async () => (await Array.fromAsync(open().waiting.list({ project_id: project }))).length === 1,
  );
  await allocations.delete(holder.consumer);
  const { code, stdout } = await ended;
  assert.equal(code, 0, stdout);
  assert.match(stdout, new RegExp(`^Consumer \\S+ has this now\\.\n[^]*${name}=1 `));
  await commands.fails('full', /no tree meets/, args.with(-3, '1').slice(0, -2));
});

test('the command refuses invalid waits', async () => {
  const place = (...args: readonly string[]) => ['allocation', 'place', 'VCPU=1', '--project', 'ci', ...args];
  await commands.isWrongUsage(/--line needs --wait/, place('--line', 'gpu'));
  await commands.isWrongUsage(/cannot be used with/, place('--wait', '1m', '--dry-run'));
  await commands.isWrongUsage(/such as 45s, 30m, 8h, 2d or 1h30m/, place('--wait', 'soon'));
  await commands.isWrongUsage(/a time from 1 s/, place('--wait', '0'));
  await commands.isWrongUsage(/given twice/, place('--wait', '1m', '--wait', '2m'));
});
