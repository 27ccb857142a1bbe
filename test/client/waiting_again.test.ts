/** How client and command keep a claim waiting: what they send, and what they do when the connection is lost. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, test } from 'node:test';
import { ApiError, connect, type WaitingClaim } from '../../src/client/index.ts';
import { until } from '../support/until.ts';
import { startPlacement } from './command.ts';
import { startFront, type TestServer } from './servers.ts';

const uuid = 'c0ffee00-0000-4000-8000-000000000001';
const placing = {
  candidates: 'resources=VCPU:1',
  project_id: 'ci',
  user_id: 'ada',
  consumer_generation: null,
  consumer_type: 'JOB',
} as const;
const placed = { allocations: {}, mappings: {}, consumer_generation: 1, resource_providers: {} };

/** What happens to a claim: it is answered, loses its connection after a while, or waits without end. */
type Fate = { readonly status: number; readonly afterMs?: number } | 'lost' | 'waits';

const headers = {
  'content-type': 'application/json',
  'openstack-api-version': 'placement 2.8',
  'openstack-api-minimum-version': 'placement 2.0',
  'openstack-api-maximum-version': 'placement 2.8',
};
const retryAfter = { 503: { 'retry-after': '0' }, 429: { 'retry-after': '1' } } as const;
const answer = (response: ServerResponse, body: unknown, status = 200) => {
  const more = status === 503 || status === 429 ? retryAfter[status] : {};
  response.writeHead(status, { ...headers, ...more }).end(JSON.stringify(body));
};

let server: TestServer;
/** The fates of the next claims. The last one stays. */
let fates: Fate[] = [];
let bodies: unknown[] = [];
/** What `GET /waiting` has; undefined if the user may not see it. */
let waiting: readonly WaitingClaim[] | undefined;
/** How many claims lost their connection by the client. */
let left = 0;

beforeEach(async () => {
  fates = [];
  bodies = [];
  waiting = [];
  left = 0;
  server = await startFront(async (incoming, response) => {
    const { pathname, searchParams } = new URL(incoming.url ?? '', 'http://server');
    if (pathname === '/') return answer(response, { versions: [] });
    if (pathname === '/waiting') {
      if (waiting === undefined) return answer(response, {}, 403);
      const start = waiting.findIndex(({ number }) => `${number}` === searchParams.get('marker')) + 1;
      return answer(response, { waiting: waiting.slice(start, start + Number(searchParams.get('limit'))) });
    }
    bodies.push(JSON.parse(await text(incoming)));
    const fate = (fates.length > 1 ? fates.shift() : fates[0]) ?? 'waits';
    if (fate === 'lost') return setTimeout(() => incoming.socket.destroy(), 1_100);
    if (fate === 'waits') return response.on('close', () => left++);
    return setTimeout(() => answer(response, fate.status === 200 ? placed : {}, fate.status), fate.afterMs ?? 0);
  });
});
afterEach(() => server.close());

/** The waits in seconds that the claims requested. */
const waits = () =>
  server.seen
    .filter(({ url }) => url.startsWith('/allocations'))
    .map((seen) => Number(/^wait=(\d+)$/.exec(String(seen.headers.prefer))?.[1]));

const open = (options = {}) => connect({ endpoint: server.url, auth: 'admin', ...options });

test('a claim whose connection is lost, or whose server ends, is sent again with the remaining time', async () => {
  fates = ['lost', { status: 503 }, 'lost', { status: 200 }];
  const options = { waitMs: 59_900, line: 'gpu' };
  const startedMs = performance.now();
  const answer = open({ attempts: 1 }).allocations.place(uuid, placing, options);
  await until('the claim waits', () => bodies.length === 1);
  const leftMs = options.waitMs - (performance.now() - startedMs);
  assert.deepEqual(await answer, placed);
  const [first = 0, second = 0, third = 0, fourth = 0] = waits();
  assert.ok(first <= 60 && first * 1000 >= leftMs, `${waits()}, with ${leftMs} ms left`);
  assert.ok(second < first && third <= second && fourth < third && fourth > 0, `${waits()}`);
  assert.deepEqual(bodies, Array(4).fill({ ...placing, line: 'gpu' }));
});

test('a claim may wait for longer than the deadline of the client', async () => {
  fates = [{ status: 200, afterMs: 1_500 }];
  const { allocations } = open({ deadlineMs: 1_000 });
  await allocations.placeMany({ [uuid]: placing }, { waitMs: 2_000, line: 'gpu' });
  assert.deepEqual([waits(), bodies], [[2], [{ [uuid]: placing, line: 'gpu' }]]);
  fates = [{ status: 200 }];
  await allocations.place(uuid, placing);
  assert.deepEqual(waits(), [2, Number.NaN]);
});

test('too many waiting claims are an error immediately, and a server that does not start again one at the end', async () => {
  fates = [{ status: 429 }];
  const { allocations } = open();
  const statusIs = (status: number) => (error: unknown) => error instanceof ApiError && error.status === status;
  await assert.rejects(allocations.place(uuid, placing, { waitMs: 60_000 }), statusIs(429));
  assert.deepEqual(waits(), [60]);
  fates = [{ status: 503 }];
  await assert.rejects(allocations.place(uuid, placing, { waitMs: 1_500 }), statusIs(503));
  const again = waits().slice(1);
  assert.ok(again.length > 1 && again.every((wait) => wait === 2 || wait === 1), `${waits()}`);
});

test('a signal ends the wait and its connection', async () => {
  const controller = new AbortController();
  const reason = new Error('enough');
  const claim = open().allocations.place(uuid, placing, { waitMs: 60_000, signal: controller.signal });
  claim.catch(() => {});
  await until('the claim waits', () => bodies.length === 1);
  controller.abort(reason);
  await assert.rejects(claim, reason);
  await until('the server knows it', () => left === 1);
});

const claimOf = (consumer: string, place: number): WaitingClaim => ({
  number: place,
  consumers: [consumer],
  project_id: 'ci',
  user_id: 'ada',
  since: '2026-11-27T15:42:38Z',
  until: '2026-11-27T15:52:38Z',
  line: 'gpu',
  place,
  waits_for: place === 1 ? 'room' : 'line',
  condition: place === 1 ? 'no tree meets resources=VCPU:1' : 'claims before it',
});

test('all pages of the waiting claims are listed', async () => {
  const number = (place: number) => place.toString(16).padStart(12, '0');
  waiting = Array.from({ length: 1_001 }, (_, place) => claimOf(`c0ffee00-0000-4000-8000-${number(place)}`, place + 1));
  assert.deepEqual(await Array.fromAsync(open().waiting.list({ project_id: 'ci', line: 'gpu' })), waiting);
  const requested = server.seen.map(({ url }) => url).filter((url) => url.startsWith('/waiting'));
  assert.equal(requested.length, 2);
  assert.match(`${requested[1]}`, /project_id=ci&line=gpu&limit=1000&marker=1000/);
});

test('the command says what its claim waits for, and Ctrl-C ends the wait', async () => {
  const args = ['allocation', 'place', 'VCPU=1', '--project', 'ci', '--wait', '10m', '--line', 'gpu'];
  const startedMs = performance.now();
  const child = startPlacement(args, { OS_ENDPOINT: server.url, OS_TOKEN: 'admin' });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  await until('the claim waits', () => bodies.length === 1);
  const leftMs = 600_000 - (performance.now() - startedMs);
  const consumer = server.seen.at(-1)?.url.split('/').at(-1) ?? '';
  waiting = [{ ...claimOf(consumer, 1), condition: '' }];
  const reads = () => server.seen.filter(({ url }) => url.startsWith('/waiting'));
  const readBefore = reads().length;
  await until('it is read before it is judged', () => reads().length > readBefore);
  waiting = [claimOf(uuid, 1), claimOf(consumer, 2)];
  const second =
    'It waits for the claims before it, at place 2 of line gpu, until 2026-11-27T15:52:38Z: claims before it\n';
  await until('it says its place', () => output !== '');
  assert.equal(output, second);
  waiting = [claimOf(consumer, 1)];
  await until('it says its new place', () => output !== second);
  assert.match(output.slice(second.length), /^It waits for room, at place 1 of line gpu, .*: no tree meets .*\n$/);
  output = '';
  const ended = new Promise((resolve) => child.once('close', resolve));
  child.kill('SIGINT');
  assert.equal(await ended, 130);
  assert.match(
    output,
    new RegExp(`^The claim does not wait any more\\. .*allocation show ${consumer}" shows it\\.\n$`),
  );
  await until('the server knows it', () => left === 1);
  const [requested = 0, ...more] = waits();
  assert.deepEqual(more, []);
  // On a busy machine the process takes a while until it has sent it.
  assert.ok(requested <= 600 && requested * 1000 >= leftMs, `${requested}, with ${leftMs} ms left`);
});

test('a command that may not see the waiting claims does not report them', async () => {
  waiting = undefined;
  fates = [{ status: 200, afterMs: 1_500 }];
  const args = ['allocation', 'place', 'VCPU=1', '--project', 'ci', '--wait', '60', '--json'];
  const child = startPlacement(args, { OS_ENDPOINT: server.url, OS_TOKEN: 'admin' });
  const [out, problems] = await Promise.all([text(child.stdout), text(child.stderr)]);
  assert.deepEqual([JSON.parse(out).consumer_generation, problems], [1, '']);
});
