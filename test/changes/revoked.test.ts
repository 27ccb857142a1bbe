/** Clients that follow changes by tokens of Keystone, which may end or be revoked meanwhile. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import type { KeystoneSettings } from '../../src/access/keystone/settings.ts';
import { listen } from '../../src/http/server/listen.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { type StandIn, settingsFor, withStandIn } from '../keystone/stand_in.ts';
import { anyEngine } from '../support/engines.ts';
import { at } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';
import { openStream, type Stream } from './stream.ts';

type World = {
  readonly standIn: StandIn;
  readonly service: PlacementService;
  /** Opens a stream, and reads its first event. */
  stream(token: string): Promise<Stream>;
  /** Sends a request that waits for a minute. It must not be awaited where it begins. */
  poll(token: string): Promise<{ readonly answer: Promise<Response> }>;
  /** Lets 15 seconds pass. */
  beat(): void;
};

/** A service with Keystone, whose streams and waiting requests have their intervals by a clock of the test. All else is by the real clock. */
const serve = (t: TestContext, settings: Partial<KeystoneSettings>, use: (world: World) => Promise<void>) =>
  withStandIn((standIn) => {
    const keystoneAuthtoken = { ...settingsFor(standIn), ...settings };
    return withTestService(anyEngine, { api: { authStrategy: 'keystone' }, keystoneAuthtoken }, async (service) => {
      const server = await listen(service.app, { host: '127.0.0.1', port: 0, drainMs: 5_000 });
      const headersOf = (token: string) => ({ 'x-auth-token': token, 'openstack-api-version': 'placement 2.5' });
      t.mock.timers.enable({ apis: ['setInterval'] });
      try {
        await use({
          standIn,
          service,
          stream: async (token) => {
            const stream = await openStream(`${server.url}/changes`, headersOf(token));
            await stream.next();
            return stream;
          },
          poll: async (token) => {
            const { size } = service.followers;
            const headers = headersOf(token);
            const present = await (await fetch(`${server.url}/changes`, { headers })).json();
            const url = `${server.url}/changes?since=${String(at(present, 'next'))}`;
            const answer = fetch(url, { headers: { ...headers, prefer: 'wait=60' } });
            await until('it waits', () => service.followers.size === size + 1);
            return { answer };
          },
          beat: () => t.mock.timers.tick(15_000),
        });
      } finally {
        t.mock.timers.reset();
        service.endWaits();
        await server.close();
      }
    });
  });

const errorOf = async (stream: Stream): Promise<unknown> => {
  const { event, data } = await stream.next();
  assert.equal(event, 'error');
  assert.equal(await stream.ended(), 'in order');
  return data;
};

const noCache = { tokenCacheTime: 0, httpRequestMaxRetries: 0 };
const code = 'placement.undefined_code';

suite('clients that follow with a token of Keystone', () => {
  test('long requests end when the token is revoked', (t) =>
    serve(t, noCache, async ({ standIn, service, stream, poll, beat }) => {
      const [revoked, valid] = [standIn.issue({ roles: ['admin'] }), standIn.issue({ roles: ['admin'] })];
      const [ending, staying] = [await stream(revoked), await stream(valid)];
      const [refused, waiting] = [await poll(revoked), await poll(valid)];
      beat();
      assert.equal(await ending.block(), ':');
      standIn.revoke(revoked);
      // A check that Keystone has just answered is waited for: the next beat begins none then.
      await until('both are told', () => {
        beat();
        return service.followers.size === 2;
      });
      assert.deepEqual(await errorOf(ending), { status: 401, code });
      const answer = await refused.answer;
      assert.equal(answer.status, 401);
      assert.match(answer.headers.get('www-authenticate') ?? '', /^Keystone uri=/);
      assert.equal(at(await answer.json(), 'error', 'code'), 401);
      beat();
      await until('two follow', () => service.followers.size === 2);
      service.endWaits();
      assert.equal(await staying.ended(), 'in order');
      assert.equal((await waiting.answer).status, 200);
    }));

  test('long requests end when the user loses the role that the policy requires', (t) =>
    serve(t, noCache, async ({ standIn, stream, poll, beat }) => {
      const token = standIn.issue({ roles: ['admin'] });
      const ending = await stream(token);
      const refused = await poll(token);
      standIn.grant(token, ['reader']);
      beat();
      assert.deepEqual(await errorOf(ending), { status: 403, code });
      const answer = await refused.answer;
      assert.deepEqual([answer.status, at(await answer.json(), 'errors', 0, 'code')], [403, code]);
    }));

  test('long requests send nothing to Keystone while their tokens are cached', (t) =>
    serve(t, {}, async ({ standIn, service, stream, poll, beat }) => {
      const token = standIn.issue({ roles: ['admin'] });
      await stream(token);
      await poll(token);
      standIn.requests();
      for (let beats = 0; beats < 10; beats += 1) {
        beat();
        await new Promise(setImmediate);
      }
      // When Keystone gets a request about another token, it has got all earlier requests.
      const other = standIn.issue({ roles: ['admin'] });
      await stream(other);
      assert.deepEqual(standIn.requests(), [`GET ${other}`]);
      assert.equal(service.followers.size, 3);
    }));

  for (const delayAuthDecision of [false, true]) {
    test(`without Keystone long requests continue until their tokens expire, delay_auth_decision = ${delayAuthDecision}`, (t) =>
      serve(t, { ...noCache, delayAuthDecision }, async ({ standIn, service, stream, poll, beat }) => {
        const [short, long] = [
          standIn.issue({ roles: ['admin'], lifetime: 8 }),
          standIn.issue({ roles: ['admin'], lifetime: 600 }),
        ];
        const [ending, staying] = [await stream(short), await stream(long)];
        const waited = await poll(short);
        await standIn.down();
        for (let beats = 0; beats < 3; beats += 1) {
          beat();
          assert.equal(await staying.block(), ':');
          await new Promise((resolve) => setTimeout(resolve, 100));
          assert.ok(service.followers.size >= 1);
        }
        assert.equal(await ending.ended(), 'in order');
        const answer = await waited.answer;
        assert.deepEqual([answer.status, at(await answer.json(), 'changes')], [200, []]);
        assert.equal(service.followers.size, 1);
        // Once Keystone is back, its word counts again.
        await standIn.up();
        standIn.revoke(long);
        beat();
        assert.deepEqual(await errorOf(staying), { status: 401, code });
      }));
  }
});
