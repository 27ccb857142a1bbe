import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before, test } from 'node:test';
import {
  ApiError,
  ConnectionError,
  connect,
  isConcurrentUpdate,
  isConflict,
  type Placement,
  retryConflicts,
} from '../../src/client/index.ts';
import { freePort } from '../support/free_port.ts';
import { until } from '../support/until.ts';
import { forward, startFront, startServer, type TestServer } from './servers.ts';

/*
 * Which requests the client repeats and which it must not repeat: a real service behind a proxy that fails as proxies
 * and networks do.
 */

/** A failure instead of an answer, or after the service has answered. */
type Failure = 'none' | 'unavailable' | 'cut before' | 'cut after' | 'silent';

let server: TestServer;
let front: TestServer;
/** What happens to the next requests. Later requests are served. */
let failures: Failure[] = [];

before(async () => {
  server = await startServer();
  front = await startFront((incoming, response) => {
    const failure = failures.shift() ?? 'none';
    if (failure === 'none') forward(server.url, incoming, response);
    if (failure === 'unavailable') response.writeHead(503, { 'Retry-After': '0' }).end('{}');
    if (failure === 'cut before') incoming.socket.destroy();
    if (failure === 'cut after') forward(server.url, incoming, cut(response));
  });
});

after(async () => {
  await front.close();
  await server.close();
});

/** Makes a response that takes the answer and loses it on the way. */
function cut(response: ServerResponse): ServerResponse {
  response.writeHead = () => {
    response.socket?.destroy();
    return response;
  };
  return response;
}

/** A client with a negotiated version, and a proxy with an empty record. */
const ready = (next: Failure[]) => settled(connect({ endpoint: front.url, auth: 'admin', version: '1.39' }), next);

async function settled<Client extends Pick<Placement, 'serverVersion'>>(
  placement: Client,
  next: Failure[],
): Promise<Client> {
  failures = [];
  await placement.serverVersion();
  front.seen.length = 0;
  failures = next;
  return placement;
}

const sent = () => front.seen.map(({ method }) => method);
const uuid = (number: number) => `c0ffee00-0000-4000-8000-00000000000${number}`;
const owner = { project_id: 'p', user_id: 'u' };

test('a read is repeated after 503 and after lost connections', async () => {
  const placement = await ready(['unavailable', 'cut before', 'cut after', 'unavailable']);
  assert.deepEqual(await placement.providers.list({ name: 'nobody' }), []);
  assert.equal(front.seen.length, 5);
});

test('a guarded write is repeated, and the conflict with its first attempt has the number of attempts', async () => {
  const host = await (await ready([])).providers.create({ name: 'guarded' });
  const placement = await ready(['unavailable', 'cut before']);
  const inventories = { VCPU: { total: 4 } };
  const set = () =>
    placement.inventories.set(host.uuid, { inventories, resource_provider_generation: host.generation });
  assert.equal((await set()).resource_provider_generation, host.generation + 1);
  await ready(['cut after']);
  const again = { inventories, resource_provider_generation: host.generation + 1 };
  await assert.rejects(placement.inventories.set(host.uuid, again), (error) => {
    assert.ok(isConcurrentUpdate(error));
    assert.equal(error.attempts, 2);
    return true;
  });
  assert.equal((await placement.inventories.list(host.uuid)).resource_provider_generation, host.generation + 2);
});

test('a write that the server could execute twice is not repeated after it was sent', async () => {
  for (const failure of ['cut before', 'cut after', 'unavailable'] as const) {
    const placement = await ready([failure]);
    const error = await placement.providers.create({ name: `once ${failure}` }).catch((thrown) => thrown);
    if (failure === 'unavailable') assert.ok(error instanceof ApiError && error.status === 503, String(error));
    else assert.ok(error instanceof ConnectionError && !error.unsent, String(error));
    assert.deepEqual(sent(), ['POST']);
    const [made] = await placement.providers.list({ name: `once ${failure}` });
    assert.equal(made !== undefined, failure === 'cut after');
  }
});

test('a claim is repeated from 1.28 on, where a generation guards it, but not below', async () => {
  const first = await ready([]);
  const host = await first.providers.create({ name: 'claimed' });
  const inventories = { VCPU: { total: 8 } };
  await first.inventories.set(host.uuid, { inventories, resource_provider_generation: host.generation });
  const allocations = { [host.uuid]: { resources: { VCPU: 1 } } };

  const guarded = await ready(['cut before']);
  await guarded.allocations.set(uuid(1), { allocations, ...owner, consumer_generation: null, consumer_type: 'TEST' });
  assert.deepEqual(sent(), ['PUT', 'PUT']);

  const unguarded = await settled(connect({ endpoint: front.url, auth: 'admin', version: '1.27' }), ['cut before']);
  await assert.rejects(unguarded.allocations.set(uuid(2), { allocations, ...owner }), ConnectionError);
  assert.deepEqual(sent(), ['PUT']);
});

test('any request that did not reach the server is sent again until the deadline', async () => {
  const port = await freePort();
  const placement = connect({ endpoint: `http://127.0.0.1:${port}`, auth: 'admin', deadlineMs: 700 });
  const started = performance.now();
  await assert.rejects(placement.allocations.delete(uuid(1)), (error) => {
    assert.ok(error instanceof ConnectionError && error.unsent);
    assert.match(error.message, /nothing listens there\. Check the address/);
    return true;
  });
  const took = performance.now() - started;
  // With the default deadline it would take 30 s. A slow machine must not fail the test.
  assert.ok(took < 15_000, `it took ${took} ms`);
});

test('the number of attempts of a client can be limited', async () => {
  const placement = connect({ endpoint: front.url, auth: 'admin', version: '1.39', attempts: 3 });
  await settled(
    placement,
    Array.from({ length: 100 }, () => 'unavailable' as const),
  );
  await assert.rejects(placement.traits.list(), (error) => error instanceof ApiError && error.attempts === 3);
  assert.equal(front.seen.length, 3);
});

test('a request without an answer ends at the deadline', async () => {
  const placement = await ready(['silent']);
  await assert.rejects(
    placement.providers.list({}, { deadlineMs: 200 }),
    /No answer within 200 ms: the server or the network is slow/,
  );
});

for (const deadlineMs of [Number.POSITIVE_INFINITY, 2 ** 31]) {
  test(`a deadline of ${deadlineMs} ms is no deadline: the call waits, repeats, and ends with its signal`, async () => {
    const placement = await ready(['cut before', 'unavailable']);
    const reason = new Error('enough');
    const controller = new AbortController();
    assert.deepEqual(await placement.traits.list({ name: 'in:HW_CPU_X86_VMX' }, { deadlineMs }), ['HW_CPU_X86_VMX']);
    assert.deepEqual(sent(), ['GET', 'GET', 'GET']);

    failures = ['silent'];
    front.seen.length = 0;
    const call = placement.traits.list({}, { deadlineMs, signal: controller.signal });
    call.catch(() => {});
    await until('the request is there', () => front.seen.length > 0);
    controller.abort(reason);
    await assert.rejects(call, reason);

    const patient = connect({ endpoint: front.url, auth: 'admin', version: '1.39', deadlineMs });
    assert.deepEqual(await patient.traits.list({ name: 'in:HW_CPU_X86_VMX' }), ['HW_CPU_X86_VMX']);
  });
}

test('503 is reported when the deadline is near', async () => {
  const placement = await ready(Array.from({ length: 100 }, () => 'unavailable' as const));
  const error = await placement.traits.list({}, { deadlineMs: 500 }).catch((thrown) => thrown);
  assert.ok(error instanceof ApiError && error.status === 503, String(error));
  assert.equal(error.attempts, front.seen.length);
  assert.ok(error.attempts > 1);
});

test('a signal ends a call at once: before it is sent, while it waits for an answer, and between attempts', async () => {
  const reason = new Error('enough');
  const placement = await ready(['silent']);
  await assert.rejects(placement.providers.list({}, { signal: AbortSignal.abort(reason) }), reason);
  assert.deepEqual(sent(), []);

  const waiting = new AbortController();
  const call = placement.providers.list({}, { signal: waiting.signal });
  call.catch(() => {});
  await until('the request is there', () => front.seen.length > 0);
  waiting.abort(reason);
  await assert.rejects(call, reason);

  await ready(Array.from({ length: 100 }, () => 'unavailable' as const));
  const between = new AbortController();
  const repeated = placement.providers.list({}, { signal: between.signal });
  repeated.catch(() => {});
  await until('it was repeated', () => front.seen.length > 1);
  between.abort(reason);
  await assert.rejects(repeated, reason);
});

test('retryConflicts reads again until no other write comes in between', async () => {
  const placement = await ready([]);
  const host = await placement.providers.create({ name: 'contended' });
  const names = Array.from({ length: 8 }, (_, number) => `CUSTOM_WRITER_${number}`);
  await Promise.all(names.map((name) => placement.traits.ensure(name)));
  let attempts = 0;
  await Promise.all(
    names.map((name) =>
      retryConflicts(
        async () => {
          attempts++;
          const { traits, resource_provider_generation } = await placement.providerTraits.show(host.uuid);
          await placement.providerTraits.set(host.uuid, { traits: [...traits, name], resource_provider_generation });
        },
        { attempts: 50 },
      ),
    ),
  );
  const { traits } = await placement.providerTraits.show(host.uuid);
  assert.deepEqual(traits.toSorted(), names);
  assert.ok(attempts > names.length, 'no two writers collided');
});

test('retryConflicts stops after its number of attempts, and repeats no other error', async () => {
  const placement = await ready([]);
  const host = await placement.providers.create({ name: 'stubborn' });
  let attempts = 0;
  const wrong = { inventories: {}, resource_provider_generation: host.generation + 7 };
  const stubborn = retryConflicts(
    () => {
      attempts++;
      return placement.inventories.set(host.uuid, wrong);
    },
    { attempts: 3 },
  );
  await assert.rejects(stubborn, isConcurrentUpdate);
  assert.equal(attempts, 3);

  attempts = 0;
  const taken = retryConflicts(() => {
    attempts++;
    return placement.providers.create({ name: 'stubborn' });
  });
  await assert.rejects(taken, (error) => isConflict(error) && !isConcurrentUpdate(error));
  assert.equal(attempts, 1);
});

test('below 1.23, without codes, a concurrent update is recognized by the text', async () => {
  const placement = connect({ endpoint: front.url, auth: 'admin', version: '1.20' });
  const host = await placement.providers.create({ name: 'wordy' });
  const wrong = { inventories: {}, resource_provider_generation: host.generation + 7 };
  await assert.rejects(placement.inventories.set(host.uuid, wrong), isConcurrentUpdate);
  await assert.rejects(
    placement.providers.create({ name: 'wordy' }),
    (error) => isConflict(error) && !isConcurrentUpdate(error),
  );
});
