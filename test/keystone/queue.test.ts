/** Many new tokens at once: they wait for their turn to be validated by Keystone. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setImmediate as nextRound, setTimeout as sleep } from 'node:timers/promises';
import type { Outcome } from '../../src/access/keystone/authenticate.ts';
import { openKeystoneQueue, ValidationAbandoned } from '../../src/access/keystone/queue.ts';
import { KeystoneFault, openTokenCache } from '../../src/access/keystone/token.ts';
import { KeystoneUnreachable } from '../../src/access/keystone/transport.ts';
import { tokenValidation } from '../../src/access/keystone/validate.ts';
import { networkOf } from '../../src/http/own_hosts.ts';
import { anyEngine } from '../support/engines.ts';
import { withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';
import { userOf, type World, withKeystone } from './keystones.ts';
import { settingsFor, withStandIn } from './stand_in.ts';

const never = new AbortController().signal;
const from = (client: string, gone: AbortSignal = never) => ({ client, gone: () => gone });

/** Sends requests with invented tokens. */
const flood = ({ outcome }: World, count: number, caller = from('attacker')): readonly Promise<Outcome>[] =>
  Array.from({ length: count }, (_, n) => outcome(`invented ${caller.client} ${n}`, {}, caller));

suite('the queue before Keystone', () => {
  test('the time in the queue is not Keystone’s: a valid token behind 1,500 invented ones is accepted', () =>
    withKeystone(
      {},
      async (world) => {
        const { standIn, outcome } = world;
        await outcome(standIn.issue());
        // 64 at a time: the queue takes 9.4 s, more than a request waits for Keystone.
        standIn.behaviour.delayMs = 400;
        const startedMs = performance.now();
        const invented = flood(world, 1500);
        assert.equal(userOf(await outcome(standIn.issue({ user: 'alice' }), {}, from('attacker'))), 'alice');
        assert.ok(performance.now() - startedMs > 8_000, 'it has waited for longer than Keystone may take');
        assert.deepEqual(new Set(await Promise.all(invented)), new Set(['unauthorized']));
      },
      { budgetMs: 8_000 },
    ));

  test('clients take turns: another client’s token does not wait for the flood, and remembered tokens do not wait at all', () =>
    withKeystone({}, async (world) => {
      const { standIn, outcome } = world;
      const known = standIn.issue({ user: 'known' });
      await outcome(known);
      standIn.behaviour.delayMs = 100;
      let answered = 0;
      const invented = flood(world, 1500).map((each) => each.finally(() => (answered += 1)));
      assert.equal(userOf(await outcome(known, {}, from('attacker'))), 'known');
      assert.equal(answered, 0);
      const alice = standIn.issue({ user: 'alice' });
      const service = standIn.issue({ user: 'nova', roles: ['service'] });
      assert.equal(userOf(await outcome(alice, { 'x-service-token': service }, from('other'))), 'alice');
      assert.ok(answered < 750, `${answered} of 1500 were answered before`);
      standIn.behaviour.delayMs = 0;
      await Promise.all(invented);
    }));

  test('a validation whose clients have all left is not sent to Keystone', () =>
    withKeystone({}, async (world) => {
      const { standIn, outcome, logged } = world;
      await outcome(standIn.issue());
      standIn.behaviour.delayMs = 2_000;
      const leaving = new AbortController();
      const requests = flood(world, 64);
      const shared = standIn.issue({ user: 'shared' });
      const left = flood(world, 500, from('leaving', leaving.signal));
      const first = outcome(shared, {}, from('leaving', leaving.signal));
      const second = outcome(shared, {}, from('other'));
      await until('64 requests are sent', () => standIn.requests().length > 0);
      leaving.abort();
      // A validation that comes after the client has disconnected is sent again.
      const again = outcome('invented leaving 1', {}, from('new'));
      standIn.behaviour.delayMs = 0;
      await Promise.all(left);
      assert.equal(userOf(await second), 'shared');
      await Promise.all([first, ...requests]);
      assert.deepEqual(logged, [], 'that clients leave is no failure of Keystone');
      assert.equal(await again, 'unauthorized');
      const asks = standIn.requests().filter((ask) => ask.includes('invented leaving'));
      assert.deepEqual(asks, ['GET invented leaving 1']);
    }));

  test('a full queue refuses a validation of the client with most of them, immediately', () =>
    withKeystone(
      {},
      async (world) => {
        const { standIn, outcome, logged } = world;
        await outcome(standIn.issue());
        standIn.behaviour.delayMs = 300;
        const invented = flood(world, 64 + 100);
        const beyond = [...flood(world, 20, from('other')), ...flood(world, 10, from('third'))];
        const outcomes = await Promise.all(invented);
        assert.equal(outcomes.filter((outcome) => outcome === 'Keystone is busy').length, 30);
        // The youngest ones are those that were refused.
        assert.deepEqual(new Set(outcomes.slice(0, 134)), new Set(['unauthorized']));
        assert.deepEqual(new Set(await Promise.all(beyond)), new Set(['unauthorized']));
        assert.match(logged.join(), /100 requests wait for Keystone already/);
      },
      { mostWaiting: 100 },
    ));

  test('while Keystone does not answer, validations in the queue wait no longer than those that were sent', () =>
    withKeystone(
      {},
      async (world) => {
        const { standIn, outcome } = world;
        await outcome(standIn.issue());
        standIn.behaviour.delayMs = 120_000;
        assert.deepEqual(new Set(await Promise.all(flood(world, 1500))), new Set(['Keystone is unavailable']));
        assert.ok(standIn.requests().length < 200);
        standIn.behaviour.delayMs = 0;
        assert.equal(userOf(await outcome(standIn.issue({ user: 'alice' }))), 'alice');
      },
      { budgetMs: 2_500 },
    ));

  test('one validation without an answer fails alone, unless Keystone has answered nothing for two seconds', async (t) => {
    let nowMs = 1_000_000;
    t.mock.method(performance, 'now', () => nowMs);
    const queue = openKeystoneQueue({ atATime: 2, mostWaiting: 100 });
    const requests: {
      readonly name: string;
      readonly answer: (text: string) => void;
      readonly fail: (error?: Error) => void;
    }[] = [];
    const ask = (name: string): Promise<string> =>
      queue.run(
        () =>
          new Promise((resolve, reject) => {
            requests.push({
              name,
              answer: resolve,
              fail: (error = new KeystoneUnreachable(`no answer to ${name}`)) => reject(error),
            });
          }),
        { client: name, gone: never },
      );
    const outcomes = new Map<string, string>();
    const done = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) =>
      ask(name).then(
        (text) => outcomes.set(name, text),
        (error: unknown) => outcomes.set(name, String(error)),
      ),
    );
    await nextRound();
    requests[1]?.fail();
    await nextRound();
    nowMs += 1_900;
    requests[2]?.fail();
    await nextRound();
    assert.deepEqual([...outcomes.keys()], ['b', 'c']);
    requests[0]?.answer('yes');
    await nextRound();
    // Since the answer it has been silent for a short time only.
    nowMs += 1_900;
    requests[3]?.fail();
    await nextRound();
    assert.deepEqual([...outcomes.keys()], ['b', 'c', 'a', 'd']);
    assert.equal(queue.size, 0);
    const last = [ask('g'), ask('h')].map((each) => assert.rejects(each, /no answer to e/));
    await nextRound();
    assert.equal(queue.size, 2);
    nowMs += 100;
    requests[4]?.fail();
    await Promise.all(last);
    requests[5]?.answer('yes');
    await Promise.all(done);
    assert.equal(outcomes.get('f'), 'yes');
    // A time without questions is no time without answers.
    nowMs += 60_000;
    const first = assert.rejects(ask('i'), /no answer to i/);
    const others = [ask('j'), ask('k')];
    await nextRound();
    requests[6]?.fail();
    await first;
    requests[7]?.answer('yes');
    await nextRound();
    requests[8]?.answer('yes');
    assert.deepEqual(await Promise.all(others), ['yes', 'yes']);
    // An answer that does not help is an answer, too.
    const failed = ['l', 'm'].map((name) => assert.rejects(ask(name)));
    const later = [ask('n'), ask('o')];
    await nextRound();
    nowMs += 3_000;
    requests[9]?.fail(new KeystoneFault('Keystone answered 500.'));
    await nextRound();
    requests[10]?.fail();
    await Promise.all(failed);
    requests[11]?.answer('yes');
    await nextRound();
    requests[12]?.answer('yes');
    assert.deepEqual(await Promise.all(later), ['yes', 'yes']);
  });

  test('a request that has no time left sends nothing to Keystone', async () => {
    let sent = 0;
    let takesMs = 0;
    let answer = { status: 404, text: '' };
    const send = async () => {
      sent += 1;
      await sleep(takesMs);
      return { headers: {}, ...answer };
    };
    const validate = tokenValidation({
      transport: { send, close: () => {} },
      queue: openKeystoneQueue({ atATime: 2, mostWaiting: 100 }),
      serviceToken: { get: async () => 'own', discard: () => {} },
      cache: openTokenCache({ seconds: 60, limit: 10 }),
      invalid: openTokenCache({ seconds: 60, limit: 10 }),
      wantsCatalog: false,
    });
    await assert.rejects(validate('token', false, from('late'), { leftMs: 0 }), KeystoneUnreachable);
    assert.equal(sent, 0);
    assert.equal(await validate('token', false, from('early'), { leftMs: 1_000 }), undefined);
    assert.equal(sent, 1);
    assert.equal(await validate('token', false, from('late'), { leftMs: 0 }), undefined, 'what is known needs no time');
    takesMs = 50;
    const budget = { leftMs: 1_000 };
    assert.equal(await validate('other token', false, from('slow'), budget), undefined);
    assert.ok(budget.leftMs < 960, `${budget.leftMs} ms are left`);
    // By the clock of this service, which may be ahead of Keystone's.
    answer = {
      status: 200,
      text: JSON.stringify({ token: { expires_at: '2020-01-01T00:00:00Z', user: { id: 'u' } } }),
    };
    assert.equal(await validate('expired token', false, from('slow'), budget), undefined);
    assert.ok(await validate('expired token', true, from('slow'), budget));
  });
});

test('requests with one token share a validation, also after one has left, and the time in the queue does not count', async (t) => {
  let nowMs = 1_000_000;
  t.mock.method(performance, 'now', () => nowMs);
  const sent: string[] = [];
  const answers: (() => void)[] = [];
  const queue = openKeystoneQueue({ atATime: 1, mostWaiting: 100 });
  const validate = tokenValidation({
    transport: {
      send: ({ path, headers }) =>
        new Promise((resolve) => {
          sent.push(`${path} ${headers['x-subject-token']}`);
          answers.push(() => resolve({ status: 404, headers: {}, text: '' }));
        }),
      close: () => {},
    },
    queue,
    serviceToken: { get: async () => 'own', discard: () => {} },
    cache: openTokenCache({ seconds: 60, limit: 10 }),
    invalid: openTokenCache({ seconds: 60, limit: 10 }),
    wantsCatalog: false,
  });
  const ask = (token: string, gone = never, budget = { leftMs: 1_000 }) =>
    validate(token, false, from(token, gone), budget).catch((error: unknown) => error);
  const answerLast = async (): Promise<void> => {
    await nextRound();
    answers.at(-1)?.();
    await nextRound();
  };
  const [leavingLate, leavingEarly] = [new AbortController(), new AbortController()];
  const first = [ask('first', leavingLate.signal)];
  await nextRound();
  leavingLate.abort();
  first.push(ask('first'));
  const left: unknown[] = [];
  for (const [token, gone] of [
    ['second', leavingEarly.signal],
    ['gone before', AbortSignal.abort()],
  ] as const) {
    ask(token, gone).then((error) => left.push(error));
  }
  leavingEarly.abort();
  const budget = { leftMs: 1_000 };
  const second = [ask('second', never, budget)];
  await nextRound();
  assert.deepEqual([left.length, queue.size], [2, 1]);
  for (const error of left) assert.ok(error instanceof ValidationAbandoned);
  second.push(ask('second'));
  nowMs += 500;
  await answerLast();
  nowMs += 100;
  await answerLast();
  assert.deepEqual(sent, ['/auth/tokens?nocatalog first', '/auth/tokens?nocatalog second']);
  assert.deepEqual(await Promise.all([...first, ...second]), [undefined, undefined, undefined, undefined]);
  assert.equal(budget.leftMs, 900);
});

test('clients are distinguished by their address, those with IPv6 by their network', () => {
  const same: readonly (readonly [string, string])[] = [
    ['10.1.2.3', '::ffff:10.1.2.3'],
    ['10.1.2.3', '10.1.2.3:4711'],
    ['2001:db8:0:1::1', '2001:DB8:0:1:ffff::2'],
    ['2001:db8::1', '[2001:db8:0:0:1::]:4711'],
    ['fe80::1%eth0', 'fe80::2%eth0'],
    ['1:2:3:4:5:6:7:8', '1:2:3:4::'],
  ];
  for (const [a, b] of same) assert.equal(networkOf(a), networkOf(b), `${a} ${b}`);
  const others = ['10.1.2.3', '10.1.2.4', '2001:db8::1', '2001:db8:0:1::1', '::1', 'unknown', undefined];
  assert.equal(new Set(others.map(networkOf)).size, others.length);
});

test('a request beyond the bound of the queue is a 503 with Retry-After, and the queue is in the metrics', () =>
  withStandIn((standIn) => {
    const keystoneAuthtoken = { ...settingsFor(standIn), httpConnectTimeout: 300 };
    return withTestService(anyEngine, { api: { authStrategy: 'keystone' }, keystoneAuthtoken }, async ({ app }) => {
      const ask = async (token: string) => app.request('/resource_providers', { headers: { 'x-auth-token': token } });
      await ask('first');
      standIn.behaviour.delayMs = 300_000;
      const leaving = Array.from({ length: 64 + 5_000 }, (_, n) => ask(`invented ${n}`));
      const refused = await ask('one more');
      assert.equal(refused.status, 503);
      assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/);
      assert.match(await refused.text(), /Too many requests wait for the Keystone service already/);
      const text = await (await app.request('/metrics')).text();
      assert.match(text, /^placement_keystone_queue_length 5000$/m);
      assert.match(text, /^placement_keystone_decisions_total\{outcome="busy"\} 1$/m);
      await standIn.down();
      const statuses = await Promise.all(leaving.map(async (answer) => (await answer).status));
      assert.deepEqual(new Set(statuses), new Set([503]));
    });
  }));
