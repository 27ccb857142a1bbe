/** GET /waiting: its pages, and what it refuses; on both databases. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { anyEngine, engines } from '../support/engines.ts';
import { type Answer, accepted, at, listAt, makeProvider, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';
import { consumerBody, host, sendWith, type TestedService, version, withTestedServices } from './scene.ts';

const gang = [randomUUID(), randomUUID()].sort();
const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()] as const;

/** Lets a claim wait in each of several lines, one of them with two consumers. @returns their consumers, in the order of arrival */
async function fill({ service, claim, untilListed }: TestedService): Promise<readonly (readonly string[])[]> {
  const waits = (count: number) => untilListed(count);
  void claim({ uuid: first, amount: 8, line: 'a' });
  await waits(1);
  void claim({ uuid: second, amount: 8, line: 'b', project: 'web' });
  await waits(2);
  const body = { ...Object.fromEntries(gang.map((uuid) => [uuid, consumerBody({ amount: 8 })])), line: 'b' };
  void sendWith(service, 'POST', '/allocations', body, { prefer: 'wait=20' });
  await waits(3);
  void claim({ uuid: third, amount: 8, line: 'a' });
  await waits(4);
  return [[first], [second], gang, [third]];
}

for (const engine of engines) {
  test(`${engine}: the pages of a list have each claim once, and begin after the number of the last one`, () =>
    withTestedServices(engine, {}, async (tested) => {
      const { send } = tested;
      const all = await fill(tested);
      const pagesOf = async (query: string): Promise<readonly unknown[]> => {
        const found: unknown[] = [];
        for (let path: string | undefined = `/waiting?limit=1${query}`; path !== undefined; ) {
          const { json } = await send('GET', path);
          const page = at(json, 'waiting') as readonly object[]; // the list of the answer
          assert.equal(page.length, 1);
          found.push(at(page, 0, 'consumers'));
          const href = at(json, 'waiting_links', 0, 'href');
          path = href === undefined ? undefined : String(href);
          if (path !== undefined) {
            const marker = new URL(path, 'http://placement').searchParams.get('marker');
            assert.equal(marker, String(at(page, 0, 'number')));
          }
        }
        return found;
      };
      assert.deepEqual(await pagesOf(''), all);
      assert.deepEqual(await pagesOf('&project_id=ci'), [all[0], all[2], all[3]]);
      assert.deepEqual(await pagesOf('&line=b'), [all[1], all[2]]);
    }));

  test(`${engine}: the wait of a claim is ended, in each state`, () =>
    withTestedServices(engine, {}, async (tested) => {
      const { service, send, claim, untilListed } = tested;
      const answers = [claim({ uuid: first, amount: 8 }), claim({ uuid: second, amount: 8, line: 'a' })];
      await untilListed(2);
      answers.push(claim({ uuid: third, amount: 1, line: 'a' }));
      await untilListed(3);
      for (const uuid of [third, first, second.toUpperCase()]) {
        assert.equal((await send('DELETE', `/waiting/${uuid}?line=some`)).status, 400);
        assert.equal((await send('DELETE', `/waiting/${uuid}`)).status, 204);
        assert.equal((await send('DELETE', `/waiting/${uuid}`)).status, 404);
      }
      for (const answer of answers) {
        const { status, json } = await answer;
        assert.equal(status, 409);
        assert.equal(at(json, 'errors', 0, 'code'), 'placement.no_candidates');
      }
      await untilListed(0);
      // A POST may spell a UUID in capital letters.
      const loud = randomUUID().toUpperCase();
      const loudly = sendWith(
        service,
        'POST',
        '/allocations',
        { [loud]: consumerBody({ amount: 8 }) },
        { prefer: 'wait=20' },
      );
      await untilListed(1);
      assert.equal((await send('DELETE', `/waiting/${loud}`)).status, 204);
      assert.equal((await loudly).status, 409);
      for (const name of ['%00', 'x', randomUUID()]) {
        assert.equal((await send('DELETE', `/waiting/${name}`)).status, 404, name);
      }
    }));
}

test('the refusal and the list say of a claim that it can never fit', () =>
  withTestedServices(anyEngine, {}, async ({ claim, listed, untilListed, send, take }) => {
    await take(1);
    const never = /no provider gives more than 4 of PGPU to one consumer\.$/;
    const detailOf = (answer: Answer) => String(at(answer.json, 'errors', 0, 'detail'));
    assert.match(detailOf(await claim({ amount: 5, wait: '' })), never);
    void claim({ uuid: first, amount: 5, line: 'a' });
    await untilListed(1);
    await until('its condition is told', async () => never.test(String((await listed())[0]?.condition)));
    assert.doesNotMatch(
      detailOf(await claim({ amount: 4, wait: '' })),
      never,
      'it fits when the other one is released',
    );
    const limit = { resources: { PGPU: 3 }, generation: null };
    accepted(await send('PUT', '/limits/small', limit));
    await send('DELETE', `/waiting/${first}`);
    const inventories = `/resource_providers/${host}/inventories`;
    const setStock = async (stock: object): Promise<void> => {
      const generation = at((await send('GET', inventories)).json, 'resource_provider_generation');
      accepted(
        await send('PUT', inventories, { resource_provider_generation: generation, inventories: { PGPU: stock } }),
      );
    };
    await setStock({ total: 8, max_unit: 6 });
    assert.match(
      detailOf(await claim({ amount: 7, wait: '' })),
      /no provider gives more than 6 of PGPU to one consumer/,
    );
    const above = await claim({ amount: 4, project: 'small', wait: '' });
    assert.equal(above.status, 403);
    assert.match(detailOf(above), /asks for 4 more\. That is more than the limit itself\.$/);
    await setStock({ total: 8, reserved: 8 });
    assert.match(detailOf(await claim({ amount: 1, wait: '' })), /All PGPU is reserved, as on drained hosts\.$/);
  }));

test('each wrong parameter of a list is refused', () =>
  withTestedServices(anyEngine, {}, async ({ send }) => {
    for (const query of [
      'line=%00',
      `line=${'x'.repeat(65)}`,
      'line=',
      'limit=0',
      'limit=1001',
      'limit=1&limit=2',
      'marker=',
      'marker=x',
      'marker=-1',
      'project_id=',
      'place=1',
    ]) {
      const { status, text } = await send('GET', `/waiting?${query}`);
      assert.equal(status, 400, `${query}: ${text}`);
    }
  }));

test('each wrong wait and line is refused, and claims nothing', () =>
  withTestedServices(anyEngine, {}, async ({ service, send, claim, listed }) => {
    const uuid = randomUUID();
    const refused = async (answer: Promise<Answer>, detail: RegExp): Promise<void> => {
      const { status, json, text } = await answer;
      assert.equal(status, 400, text);
      assert.match(String(at(json, 'errors', 0, 'detail')), detail);
    };
    for (const wait of ['0', '-1', '1.5', 'x', '3601', '"x"', '']) {
      if (wait !== '') await refused(claim({ uuid, wait }), /Prefer: wait is a number of seconds from 1 to 3600/);
    }
    for (const line of ['', 'x'.repeat(65), 1, null, 'a\u0000b', '\ud800']) {
      await refused(claim({ uuid, more: { line } }), /line|NUL|surrogate/);
    }
    const plain = { ...consumerBody({}), candidates: undefined, allocations: { [host]: { resources: { PGPU: 1 } } } };
    await refused(
      claim({ uuid, wait: '', line: 'a' }),
      /'line' is for a claim that waits, and the request has no header Prefer: wait/,
    );
    await refused(claim({ uuid, line: 'a', more: { dry_run: true } }), /a dry run does not wait/);
    const path = `/allocations/${uuid}`;
    const prefer = { prefer: 'wait=1' };
    await refused(sendWith(service, 'PUT', path, { ...plain, line: 'a' }, prefer), /no consumer has 'candidates'/);
    const matching = { ...prefer, 'if-match': '*' };
    await refused(
      sendWith(service, 'PUT', path, { ...consumerBody({}), line: 'a' }, matching),
      /a request with If-Match does not wait/,
    );
    const two = {
      [uuid]: consumerBody({ project: 'ci' }),
      [randomUUID()]: consumerBody({ project: 'web' }),
      line: 'a',
    };
    await refused(sendWith(service, 'POST', '/allocations', two, prefer), /'line' is of one project/);
    for (const line of [1, '', null, 'x'.repeat(65)]) {
      const body = { [uuid]: consumerBody({}), line };
      assert.equal((await sendWith(service, 'POST', '/allocations', body, prefer)).status, 400);
    }
    assert.equal((await send('PUT', path, { ...consumerBody({}), line: 'a' }, 'placement 2.7')).status, 400);
    assert.deepEqual(at((await send('GET', path)).json, 'allocations'), {});
    assert.deepEqual(await listed(), []);
    const unwaited = await sendWith(service, 'PUT', path, plain, prefer);
    assert.equal(unwaited.status, 204);
    assert.equal(unwaited.headers.get('preference-applied'), null);
  }));

test('a wrong claim does not wait, alone or in a line', () =>
  withTestedServices(anyEngine, { units: 1 }, async ({ claim, take, untilListed }) => {
    await take(1);
    void claim({ line: 'a' });
    void claim();
    await untilListed(2);
    for (const line of [undefined, 'a', 'b']) {
      const ofLine = line === undefined ? {} : { line };
      const wrong = await claim({ ...ofLine, more: { consumer_generation: 7 } });
      assert.equal(wrong.status, 409);
      assert.equal(at(wrong.json, 'errors', 0, 'code'), 'placement.concurrent_update');
      assert.equal((await claim({ ...ofLine, query: 'resources=CUSTOM_NONE:1' })).status, 400);
    }
    await untilListed(2);
  }));

test('as many claims wait as may, and further claims are refused', () =>
  withTestedServices(
    anyEngine,
    { units: 1, overrides: { placement: { maxWaiting: 2 } } },
    async ({ claim, take, untilListed }) => {
      await take(1);
      void claim();
      void claim({ line: 'a' });
      await untilListed(2);
      for (const line of ['a', undefined]) {
        const { status, headers } = await claim(line === undefined ? {} : { line });
        assert.equal(status, 429);
        assert.ok(Number(headers.get('retry-after')) > 0);
      }
      await untilListed(2);
    },
  ));

test('where all seats are taken, one client with a tenth of them takes none from a client with more', () =>
  withTestedServices(
    anyEngine,
    {
      units: 1,
      overrides: { placement: { maxWaiting: 4 }, osloMiddleware: { enableProxyHeadersParsing: true } },
    },
    async ({ service, take, untilListed }) => {
      await take(1);
      const claimFrom = (address: string) =>
        sendWith(service, 'PUT', `/allocations/${randomUUID()}`, consumerBody({}), {
          prefer: 'wait=20',
          'x-forwarded-for': address,
        });
      const many = [1, 2, 3, 4].map(() => claimFrom('10.1.1.1'));
      await untilListed(4);
      const other = claimFrom('10.2.2.2');
      const refusal = await Promise.race(many);
      assert.equal(refusal.status, 429, refusal.text);
      assert.equal((await claimFrom('10.2.2.2')).status, 429, 'it has a quarter');
      await untilListed(4);
      const answered = await Promise.race([...many.slice(0, 3), other, Promise.resolve(undefined)]);
      assert.equal(answered, undefined, 'the others still wait');
    },
  ));

test('users of two projects who are called the same have two shares of the seats', () =>
  withTestService(anyEngine, { api: { authStrategy: 'tokens' }, placement: { maxWaiting: 2 } }, async (service) => {
    const operator = requestsTo({ app: service.operatorApp() }, version);
    await makeProvider(operator, host, { PGPU: { total: 1 } });
    accepted(await operator('PUT', `/allocations/${randomUUID()}`, consumerBody({})));
    const claimOf = async (project: string) => {
      const made = await operator('POST', '/tokens', { user_id: 'default', project_id: project, roles: ['admin'] });
      const headers = { 'x-auth-token': String(at(accepted(made).json, 'token')), prefer: 'wait=20' };
      return () => sendWith(service, 'PUT', `/allocations/${randomUUID()}`, consumerBody({ project }), headers);
    };
    const [ofVision, ofSpeech] = [await claimOf('vision'), await claimOf('speech')];
    const listed = async () => listAt((await operator('GET', '/waiting')).json, 'waiting');
    const many = [ofVision(), ofVision()];
    await until('vision has all seats', async () => (await listed()).length === 2);
    const refused = ofSpeech().then(({ status }) => assert.notEqual(status, 429));
    const refusal = await Promise.race(many);
    assert.equal(refusal.status, 429, 'well before its time is over');
    assert.match(refusal.text, /no place for another one of user default of project vision/);
    const projects = async () => (await listed()).map((each) => at(each, 'project_id')).toSorted();
    await until('speech has one', async () => `${await projects()}` === 'speech,vision');
    service.endWaits();
    await refused;
  }));
