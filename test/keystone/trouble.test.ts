/** Keystone is down, slow, or sends broken answers. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { openTransport } from '../../src/access/keystone/transport.ts';
import { until } from '../support/until.ts';
import { userOf, withKeystone } from './keystones.ts';
import { withStandIn } from './stand_in.ts';

const unavailable = 'Keystone is unavailable';

suite('Keystone in trouble', () => {
  test('while it is down, remembered tokens are accepted, and other requests wait for the retries', async () => {
    await withKeystone({ httpRequestMaxRetries: 1 }, async ({ standIn, outcome, logged }) => {
      const [known, fresh] = [standIn.issue({ user: 'known' }), standIn.issue({ user: 'fresh' })];
      await outcome(known);
      await standIn.down();
      assert.equal(userOf(await outcome(known)), 'known');
      assert.equal(await outcome(), 'unauthorized');
      const started = performance.now();
      assert.equal(await outcome(fresh), unavailable);
      const took = performance.now() - started;
      assert.ok(took >= 490 && took < 5000, `${took} ms`);
      assert.match(logged.join(), /Keystone cannot be reached at http:\/\/127\.0\.0\.1:\d+\/v3: connect ECONNREFUSED/);
      await standIn.up();
      assert.equal(userOf(await outcome(fresh)), 'fresh');
    });
  });

  test('an attempt ends with the time of its request, however long an attempt may take', () =>
    withStandIn(async (standIn) => {
      const transport = openTransport({
        url: `${standIn.url}/v3`,
        tls: () => ({ rejectUnauthorized: true }),
        timeoutMs: 60_000,
        timeoutSource: 'a test',
        maxRetries: 0,
        maxConnections: 1,
        onAttempt: () => {},
      });
      standIn.behaviour.delayMs = 1_000;
      const request = { method: 'GET', path: '/auth/tokens', headers: {} } as const;
      const late = /did not answer within 0\.1 s \(a test\)/;
      await assert.rejects(transport.send(request, performance.now() + 100), late);
      transport.close();
    }));

  test('Keystone may be down at the start', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      const token = standIn.issue({ user: 'alice' });
      await standIn.down();
      assert.equal(await outcome(token), unavailable);
      await standIn.up();
      assert.equal(userOf(await outcome(token)), 'alice');
    });
  });

  test('while it is slow, requests with remembered tokens do not wait, and others wait a limited time', async () => {
    await withKeystone({ httpConnectTimeout: 1 }, async ({ standIn, outcome, logged }) => {
      const [known, fresh] = [standIn.issue({ user: 'known' }), standIn.issue({ user: 'fresh' })];
      await outcome(known);
      standIn.behaviour.delayMs = 3000;
      let answered = 0;
      const ask = () => outcome(fresh).finally(() => (answered += 1));
      const waiting = Array.from({ length: 100 }, ask);
      assert.equal(userOf(await outcome(known)), 'known');
      assert.equal(answered, 0);
      assert.deepEqual(new Set(await Promise.all(waiting)), new Set([unavailable]));
      assert.match(logged.join(), /did not answer within 1 s \(\[keystone_authtoken\] http_connect_timeout\)/);
      standIn.behaviour.delayMs = 0;
      assert.equal(userOf(await outcome(fresh)), 'fresh');
    });
  });

  test('while it is frozen, a request waits 10 s for all attempts together, also one with the token of a service', async () => {
    await withKeystone({ httpRequestMaxRetries: 3 }, async ({ standIn, outcome, logged }) => {
      await outcome(standIn.issue());
      standIn.behaviour.delayMs = 120_000;
      const startedMs = performance.now();
      const waiting = [outcome(standIn.issue()), outcome(standIn.issue(), { 'x-service-token': standIn.issue() })];
      assert.deepEqual(await Promise.all(waiting), [unavailable, unavailable]);
      const tookMs = performance.now() - startedMs;
      // Four attempts of ten seconds would take 43.5 s.
      assert.ok(tookMs >= 9_900 && tookMs < 20_000, `${tookMs} ms`);
      assert.match(
        logged.join(),
        /within 10 s \(10 s for all tries, the default of \[keystone_authtoken\] http_connect_timeout\)/,
      );
    });
  });

  test('while it is frozen, there is time for another attempt if http_connect_timeout is short', async () => {
    await withKeystone({ httpRequestMaxRetries: 3, httpConnectTimeout: 1 }, async ({ standIn, outcome }) => {
      await outcome(standIn.issue());
      standIn.requests();
      const token = standIn.issue({ user: 'alice' });
      standIn.behaviour.delayMs = 120_000;
      const waiting = outcome(token);
      await until('it got two requests', () => standIn.requests().length > 0);
      await until('it got another request', () => standIn.requests().length > 0);
      standIn.behaviour.delayMs = 0;
      assert.equal(userOf(await waiting), 'alice');
    });
  });

  test('an answer without information is no refusal', async () => {
    await withKeystone({}, async ({ standIn, outcome, logged }) => {
      const token = standIn.issue({ user: 'alice' });
      const answers = [
        { status: 500, text: 'oops' },
        { status: 503, text: '' },
        { status: 403, text: '{}' },
        { status: 200, text: 'not JSON' },
        { status: 200, text: '{"token": {"user": {}}}' },
        { status: 200, text: '{"token": {"user": {"id": "u"}, "expires_at": "never"}}' },
        { status: 302, text: '' },
      ];
      await outcome(standIn.issue());
      for (const broken of [...answers, ...answers]) {
        standIn.behaviour.broken = broken;
        assert.equal(await outcome(token), unavailable, JSON.stringify(broken));
      }
      for (const { status } of answers) {
        const of = logged.filter((line) =>
          line.includes(status === 200 ? 'has an unknown form' : `answered ${status} `),
        );
        assert.equal(of.length, 1, `${status} is logged once, not for each request: ${logged.join()}`);
      }
      assert.equal(logged.length, 5);
      standIn.behaviour.broken = undefined;
      assert.equal(userOf(await outcome(token)), 'alice');
    });
  });

  test('a connection that Keystone has closed in between is no failure', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      await outcome(standIn.issue());
      await standIn.down();
      await standIn.up();
      assert.equal(userOf(await outcome(standIn.issue({ user: 'alice' }))), 'alice');
    });
  });

  test('with delay_auth_decision the request is unauthorized instead of unavailable', async () => {
    await withKeystone({ delayAuthDecision: true }, async ({ standIn, outcome }) => {
      const token = standIn.issue({ user: 'alice' });
      assert.equal(userOf(await outcome(token, { 'x-service-token': 'nonsense' })), 'alice');
      await standIn.down();
      assert.equal(await outcome(standIn.issue()), 'unauthorized');
    });
  });
});
