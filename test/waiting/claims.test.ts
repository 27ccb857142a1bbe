/** Claims that wait: for room, for a limit and for their turn; on both databases. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { anyEngine, engines } from '../support/engines.ts';
import { type Answer, accepted, at, makeProvider } from '../support/requests.ts';
import { type ClaimRequest, consumerBody, host, sendWith, type TestedService, withTestedServices } from './scene.ts';

const placed = (answer: Answer): void => {
  assert.equal(answer.status, 200, `${answer.request}: ${answer.status} ${answer.text}`);
  assert.equal(answer.headers.get('preference-applied'), 'wait=20');
};

function refused(answer: Answer, status: number, detail: RegExp, code?: string): void {
  assert.equal(answer.status, status, answer.text);
  assert.match(String(at(answer.json, 'errors', 0, 'detail')), detail);
  if (code !== undefined) assert.equal(at(answer.json, 'errors', 0, 'code'), code);
}

/** Resolves with the indexes of the answers that came first, in their order. */
async function orderOf(answers: readonly Promise<Answer>[], count = answers.length): Promise<readonly number[]> {
  const order: number[] = [];
  const late = sleep(15_000, undefined, { ref: false }).then(() =>
    assert.fail(`only ${order.length} of ${count} claims were placed: ${order}`),
  );
  const rest = new Map(answers.entries());
  while (order.length < count) {
    const [index, answer] = await Promise.race([
      ...Array.from(rest, async ([each, promise]) => [each, await promise] as const),
      late,
    ]);
    placed(answer);
    order.push(index);
    rest.delete(index);
  }
  return order;
}

/** Sends claims one after the other, each when the one before waits. */
async function inTurn(
  { claim, untilListed }: TestedService,
  options: readonly ClaimRequest[],
): Promise<readonly Promise<Answer>[]> {
  const answers: Promise<Answer>[] = [];
  for (const each of options) {
    answers.push(claim(each));
    await untilListed(answers.length);
  }
  return answers;
}

for (const engine of engines) {
  test(`${engine}: a claim that fits is written at once, and its answer says that the claim would have waited`, () =>
    withTestedServices(engine, {}, async ({ claim, listed }) => {
      placed(await claim());
      assert.deepEqual(await listed(), []);
    }));

  test(`${engine}: claims wait for room, and get it in the order in which they came`, () =>
    withTestedServices(engine, { units: 2 }, async (tested) => {
      const { take, release, untilListed, listed } = tested;
      const held = [await take(1), await take(1)];
      const answers = await inTurn(tested, [{}, {}, {}, {}]);
      const [first] = await listed();
      assert.deepEqual(
        { ...first, number: 1, consumers: 1, since: 1, until: 1, condition: 1 },
        {
          number: 1,
          consumers: 1,
          project_id: 'ci',
          user_id: 'ada',
          since: 1,
          until: 1,
          line: null,
          place: 1,
          waits_for: 'room',
          condition: 1,
        },
      );
      assert.match(String(first?.condition), /no tree meets resources=PGPU:1/);
      const waiting = async (what: string): Promise<number> =>
        Number(
          new RegExp(`^placement_waiting_${what} (\\S+)$`, 'm').exec((await tested.send('GET', '/metrics')).text)?.[1],
        );
      assert.equal(await waiting('claims'), 4);
      const longest = await waiting('longest_seconds');
      assert.ok(longest > 0);
      await sleep(200);
      const later = await waiting('longest_seconds');
      assert.ok(later >= longest + 0.2 && later < 60, `${later} after ${longest}`);
      for (const uuid of held) await release(uuid);
      assert.deepEqual(await orderOf(answers, 2), [0, 1]);
      await untilListed(2);
      const youngest = await inTurn({ ...tested, untilListed: (count) => untilListed(2 + count) }, [{}]);
      for (const { consumers } of await listed()) {
        const [uuid = ''] = consumers as readonly string[]; // as openapi.yaml says
        await tested.send('DELETE', `/waiting/${uuid}`);
      }
      await Promise.all(youngest);
      assert.equal(await waiting('longest_seconds'), 0);
    }));

  test(`${engine}: a large claim of a line goes before small ones that came later and would fit`, () =>
    withTestedServices(engine, { units: 4 }, async (tested) => {
      const { claim, take, release, untilListed, listed } = tested;
      const held = [await take(1), await take(1), await take(1)];
      const large = randomUUID();
      const answers = await inTurn(tested, [{ uuid: large, amount: 4, line: 'gpu' }, { line: 'gpu' }]);
      assert.deepEqual(
        (await listed('?project_id=ci&line=gpu')).map((each) => [each.place, each.waits_for]),
        [
          [1, 'room'],
          [2, 'line'],
        ],
      );
      const other = randomUUID();
      placed(await claim({ uuid: other, line: 'other' }));
      await release(other);
      for (const uuid of held) await release(uuid);
      assert.deepEqual(await orderOf(answers, 1), [0]);
      await release(large);
      assert.deepEqual(await orderOf(answers.slice(1)), [0]);
      await untilListed(0);
    }));

  test(`${engine}: claims without a line whose consumers other requests have written end, and others wait on`, () =>
    withTestedServices(engine, { units: 2 }, async ({ service, send, claim, take, untilListed }) => {
      await take(2);
      const [inClaim, inOther, inGang] = [randomUUID(), randomUUID(), randomUUID()];
      const gang = { [inGang]: consumerBody({ amount: 2 }), [randomUUID()]: consumerBody({ amount: 1 }) };
      const ended = [
        claim({ uuid: inClaim, amount: 2, wait: 30 }),
        claim({ uuid: inOther, amount: 2, wait: 30 }),
        sendWith(service, 'POST', '/allocations', gang, { prefer: 'wait=30' }),
      ];
      void claim({ amount: 2, wait: 30 });
      await untilListed(4);
      await makeProvider(send, randomUUID(), { VCPU: { total: 8 } });
      // Each of another project, and so none of them is a later request for the same claim.
      for (const uuid of [inClaim, inOther, inGang]) {
        const body = consumerBody({ query: 'resources=VCPU:1', project: 'others' });
        accepted(await send('PUT', `/allocations/${uuid}`, body));
      }
      const startedMs = performance.now();
      for (const { status, json } of await Promise.all(ended)) {
        assert.equal(status, 409);
        assert.equal(at(json, 'errors', 0, 'code'), 'placement.concurrent_update');
      }
      assert.ok(performance.now() - startedMs < 15_000, 'long before their times are over');
      await untilListed(1);
    }));

  test(`${engine}: a claim whose consumer another request has written ends, and its line goes on`, () =>
    withTestedServices(engine, { units: 4 }, async ({ claim, take, untilListed }) => {
      await take(2);
      const uuid = randomUUID();
      const first = claim({ uuid, amount: 4, line: 'gpu', wait: 60 });
      await untilListed(1);
      const second = claim({ line: 'gpu', wait: 60 });
      await untilListed(2);
      accepted(await claim({ uuid, wait: '' }));
      const answers = await Promise.race([Promise.all([first, second]), sleep(30_000, undefined, { ref: false })]);
      assert.deepEqual(
        answers?.map(({ status }) => status),
        [409, 200],
      );
    }));

  test(`${engine}: a claim waits for a limit of its project`, () =>
    withTestedServices(engine, { units: 10 }, async ({ claim, take, release, send, untilListed, listed }) => {
      accepted(await send('PUT', '/limits/ci', { resources: { PGPU: 2 }, generation: null }));
      const held = [await take(1, 'ci'), await take(1, 'ci')];
      const answers = [claim(), claim()];
      await untilListed(2);
      assert.deepEqual(
        (await listed()).map((each) => each.waits_for),
        ['limit', 'limit'],
      );
      await release(held[0] ?? '');
      assert.deepEqual(await orderOf(answers, 1), [0]);
      accepted(await send('PUT', '/limits/ci', { resources: { PGPU: 3 }, generation: 1 }));
      placed(await (answers[1] as Promise<Answer>)); // there is one
    }));

  test(`${engine}: a gang waits and is placed as a whole`, () =>
    withTestedServices(engine, { units: 4 }, async ({ service, take, release, untilListed, send }) => {
      const held = [await take(1), await take(1), await take(1)];
      const uuids = [randomUUID(), randomUUID()];
      const body = Object.fromEntries(uuids.map((uuid) => [uuid, consumerBody({ amount: 2 })]));
      const answer = sendWith(service, 'POST', '/allocations', body, { prefer: 'wait=20' });
      await untilListed(1);
      await release(held[0] ?? '');
      await release(held[1] ?? '');
      await sleep(200);
      for (const uuid of uuids)
        assert.deepEqual(at((await send('GET', `/allocations/${uuid}`)).json, 'allocations'), {});
      await release(held[2] ?? '');
      placed(await answer);
    }));

  test(`${engine}: a claim that times out gets the last refusal`, () =>
    withTestedServices(engine, { units: 1 }, async ({ claim, take, untilListed }) => {
      await take(1);
      const answers = await Promise.all([
        claim({ wait: 1 }),
        claim({ wait: 1, line: 'gpu' }),
        claim({ wait: 1, line: 'gpu' }),
      ]);
      for (const answer of answers) {
        refused(answer, 409, /no tree meets resources=PGPU:1/, 'placement.no_candidates');
        assert.equal(answer.headers.get('preference-applied'), 'wait=1');
      }
      await untilListed(0);
    }));
}

test('a waiting claim is written after anything that makes room', () =>
  withTestedServices(anyEngine, { units: 1 }, async ({ claim, take, send, untilListed }) => {
    const generation = async (): Promise<unknown> =>
      at((await send('GET', `/resource_providers/${host}`)).json, 'generation');
    const stock = async (total: number, uuid = host): Promise<void> => {
      const body = {
        resource_provider_generation: uuid === host ? await generation() : 0,
        inventories: { PGPU: { total } },
      };
      accepted(await send('PUT', `/resource_providers/${uuid}/inventories`, body));
    };
    const setPart = async (part: 'traits' | 'aggregates', names: readonly string[]): Promise<void> => {
      const body = { resource_provider_generation: await generation(), [part]: names };
      accepted(await send('PUT', `/resource_providers/${host}/${part}`, body));
    };
    await take(1);
    const aggregate = randomUUID();
    const wakes: (readonly [query: string, wake: () => Promise<void>])[] = [
      ['resources=PGPU:1', () => stock(2)],
      ['resources=PGPU:1&required=HW_CPU_X86_AVX', () => stock(3).then(() => setPart('traits', ['HW_CPU_X86_AVX']))],
      [`resources=PGPU:1&member_of=${aggregate}`, () => stock(4).then(() => setPart('aggregates', [aggregate]))],
      [
        'resources=PGPU:9',
        async () => {
          const uuid = randomUUID();
          accepted(await send('POST', '/resource_providers', { uuid, name: uuid }));
          await stock(9, uuid);
        },
      ],
      [
        'resources=PGPU:6',
        async () => {
          const uuid = randomUUID();
          await stock(10);
          const body = { ...consumerBody({ amount: 6 }), expires_in: 1 };
          const answer = await send('PUT', `/allocations/${uuid}`, body);
          assert.equal(answer.status, 409, 'the claim that waits came first');
        },
      ],
    ];
    for (const [query, wake] of wakes) {
      const answer = claim({ query });
      await untilListed(1);
      await wake();
      placed(await answer);
      await untilListed(0);
    }
  }));

test('a waiting claim is written when a term expires', () =>
  withTestedServices(anyEngine, { units: 1 }, async ({ claim, send, untilListed }) => {
    accepted(await send('PUT', `/allocations/${randomUUID()}`, { ...consumerBody({}), expires_in: 1 }));
    const answer = claim();
    await untilListed(1);
    placed(await answer);
  }));

test('a claim waits for the limit of its own consumer type', () =>
  withTestedServices(anyEngine, { units: 10 }, async (tested) => {
    const { claim, send, release } = tested;
    const consumers = { TRAINING: 1, TEST: 1 };
    accepted(await send('PUT', '/limits/ci', { resources: {}, consumers, generation: null }));
    const held = randomUUID();
    placed(await claim({ type: 'TRAINING' }));
    placed(await claim({ uuid: held, type: 'TEST' }));
    const answers = await inTurn(tested, [{ type: 'TRAINING' }, { type: 'TEST' }]);
    await release(held);
    assert.deepEqual(await orderOf(answers, 1), [1]);
  }));

test('a claim that comes while the process ends does not begin to wait', () =>
  withTestedServices(anyEngine, { units: 1 }, async ({ service, claim, take }) => {
    await take(1);
    const coming = [claim(), claim({ line: 'gpu' })];
    service.endWaits();
    for (const answer of await Promise.all([...coming, claim(), claim({ line: 'gpu' })]))
      refused(answer, 503, /The process ends. Ask again/);
  }));

test('of a claim that was placed nothing is left that would run at the end of its time', () =>
  withTestedServices(anyEngine, { units: 40 }, async (tested) => {
    const { claim, take, release, untilListed } = tested;
    const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const held = await take(40);
    const answers = Array.from({ length: 40 }, () => claim({ wait: 60 }));
    await untilListed(40);
    const before = timers();
    await release(held);
    for (const { status } of await Promise.all(answers)) assert.equal(status, 200);
    assert.ok(timers() <= before - 30, `${before} timers before, ${timers()} afterwards`);
  }));
