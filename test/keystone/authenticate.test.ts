/** The requests to Keystone, and the results of its answers. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { openServiceToken } from '../../src/access/keystone/service_token.ts';
import { openTokenCache } from '../../src/access/keystone/token.ts';
import { defaultConfig } from '../../src/config/config.ts';
import { until } from '../support/until.ts';
import { identityOf, userOf, withKeystone } from './keystones.ts';

const unavailable = 'Keystone is unavailable';

suite('the identity of a request', () => {
  test('everything that rules can check comes from the token', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      const token = standIn.issue({ user: 'alice', roles: ['admin', 'reader'], project: 'p1' });
      const { expiresAtMs = 0, ...identity } = identityOf(await outcome(token));
      assert.ok(Math.abs(expiresAtMs - Date.now() - 3_600_000) < 60_000);
      assert.deepEqual(identity, {
        userId: 'alice',
        userDomainId: 'default',
        projectId: 'p1',
        projectDomainId: 'default',
        roles: ['admin', 'reader'],
        domainId: undefined,
        systemScope: undefined,
        isAdminProject: true,
        service: undefined,
      });
      const system = identityOf(await outcome(standIn.issue({ system: true, isAdminProject: false })));
      assert.deepEqual(
        [system.systemScope, system.projectId, system.isAdminProject, system.roles],
        ['all', undefined, false, []],
      );
      const domain = identityOf(await outcome(standIn.issue({ domain: 'd1' })));
      assert.deepEqual([domain.domainId, domain.systemScope], ['d1', undefined]);
    });
  });

  test('a missing, an empty and an unknown token are refused; white space around a token is ignored', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      assert.equal(await outcome(), 'unauthorized');
      assert.equal(await outcome(''), 'unauthorized');
      assert.deepEqual(standIn.requests(), [], 'these need no request to Keystone');
      assert.equal(await outcome('nonsense'), 'unauthorized');
      assert.equal(userOf(await outcome(undefined, { 'x-storage-token': standIn.issue({ user: 'bob' }) })), 'bob');
      assert.equal(userOf(await outcome(` ${standIn.issue({ user: 'carol' })} `)), 'carol');
      assert.equal(await outcome(standIn.issue({ lifetime: -1 })), 'unauthorized');
    });
  });
});

suite('requests to Keystone', () => {
  test('are sent once for each token; the token of the service is obtained once', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      const [one, two] = [standIn.issue(), standIn.issue()];
      for (const token of [one, two, one, two, one]) await outcome(token);
      assert.deepEqual(standIn.requests(), ['POST', `GET ${one}`, `GET ${two}`]);
    });
  });

  test('are shared: one for all requests with the same token, and one for the token of the service', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      standIn.behaviour.delayMs = 50;
      const [one, two] = [standIn.issue({ user: 'one' }), standIn.issue({ user: 'two' })];
      const tokens = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? one : two));
      const outcomes = await Promise.all(tokens.map((token) => outcome(token)));
      assert.deepEqual(
        outcomes.map(userOf),
        tokens.map((token) => (token === one ? 'one' : 'two')),
      );
      assert.deepEqual(standIn.requests().toSorted(), [`GET ${one}`, `GET ${two}`, 'POST'].toSorted());
    });
  });

  test('are repeated after token_cache_time; a revoked token is accepted until then', async () => {
    await withKeystone({ tokenCacheTime: 1 }, async ({ standIn, outcome }) => {
      const token = standIn.issue({ user: 'alice' });
      await outcome(token);
      standIn.revoke(token);
      assert.equal(userOf(await outcome(token)), 'alice');
      await until('the token is refused', async () => (await outcome(token)) === 'unauthorized');
    });
  });

  test('are sent each time with token_cache_time = -1', async () => {
    await withKeystone({ tokenCacheTime: -1 }, async ({ standIn, outcome }) => {
      const token = standIn.issue();
      for (const each of [token, 'nonsense']) {
        for (let time = 0; time < 3; time += 1) await outcome(each);
        assert.equal(standIn.requests().filter((request) => request === `GET ${each}`).length, 3);
      }
    });
  });

  for (const [tokenCacheTime, seconds] of [
    [1, 1],
    [300, 10],
  ] as const) {
    test(`are sent once in ${seconds} s for an invalid token, with token_cache_time = ${tokenCacheTime}`, async () => {
      await withKeystone({ tokenCacheTime }, async ({ standIn, outcome }) => {
        const startedMs = performance.now();
        for (let time = 0; time < 3; time += 1) assert.equal(await outcome('nonsense'), 'unauthorized');
        assert.deepEqual(standIn.requests(), ['POST', 'GET nonsense']);
        await until('Keystone gets another request', async () => {
          assert.equal(await outcome('nonsense'), 'unauthorized');
          return standIn.requests().length > 0;
        });
        const tookMs = performance.now() - startedMs;
        assert.ok(tookMs >= seconds * 1000, `after ${tookMs} ms`);
      });
    });
  }

  test('an expired token is remembered as invalid only for requests without a service token', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      const expired = standIn.issue({ user: 'alice', lifetime: -1 });
      const service = { 'x-service-token': standIn.issue({ roles: ['service'] }) };
      assert.equal(await outcome(expired), 'unauthorized');
      assert.equal(userOf(await outcome(expired, service)), 'alice');
      assert.equal(await outcome(expired), 'unauthorized');
    });
  });

  test('a failure of Keystone is not remembered: the next request validates again', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      const token = standIn.issue({ user: 'alice' });
      for (const status of [500, 401, 403]) {
        standIn.behaviour.broken = { status, text: '' };
        assert.equal(await outcome(token), unavailable);
      }
      standIn.behaviour.broken = undefined;
      await standIn.down();
      assert.equal(await outcome(token), unavailable);
      await standIn.up();
      assert.equal(userOf(await outcome(token)), 'alice');
    });
  });

  test('invented tokens do not replace valid tokens in the cache', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      const token = standIn.issue({ user: 'alice' });
      await outcome(token);
      const parts = Array.from({ length: 21 }, (_, part) =>
        Array.from({ length: 1_000 }, (_, each) => `${part}-${each}`),
      );
      for (const part of parts) await Promise.all(part.map((madeUp) => outcome(madeUp)));
      standIn.requests();
      assert.equal(userOf(await outcome(token)), 'alice');
      assert.deepEqual(standIn.requests(), []);
    });
  });

  test('are not sent for a token that expired while it was remembered', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      await outcome(standIn.issue()); // now the token of the service is there, and the next question takes a moment only
      const token = standIn.issue({ user: 'alice', lifetime: 0.3 });
      const issuedMs = Date.now();
      assert.equal(userOf(await outcome(token)), 'alice');
      standIn.requests();
      await until('it has expired', () => Date.now() > issuedMs + 300);
      assert.equal(await outcome(token), 'unauthorized');
      assert.deepEqual(standIn.requests(), []);
    });
  });

  test('the cache has a limit: the oldest token is removed first', () => {
    const cache = openTokenCache<number>({ seconds: 60, limit: 3 });
    for (const [index, key] of ['a', 'b', 'a', 'c', 'd'].entries()) cache.set(key, index);
    assert.deepEqual(['a', 'b', 'c', 'd'].map(cache.get), [2, undefined, 3, 4]);
    cache.set('e', 5);
    assert.deepEqual(['a', 'c', 'd', 'e'].map(cache.get), [undefined, 3, 4, 5]);
  });
});

suite('the token of the service', () => {
  test('is obtained again, once, when Keystone no longer accepts it', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      await outcome(standIn.issue());
      standIn.revokeOwn();
      standIn.requests();
      const token = standIn.issue({ user: 'alice' });
      assert.equal(userOf(await outcome(token)), 'alice');
      assert.deepEqual(standIn.requests(), [`GET ${token}`, 'POST', `GET ${token}`]);
    });
  });

  test('is not discarded by a late refusal of the former one', async () => {
    let issued = 0;
    const send = async () => {
      issued += 1;
      const text = JSON.stringify({ token: { expires_at: '2999-01-01T00:00:00Z' } });
      return { status: 201, headers: { 'x-subject-token': `own-${issued}` }, text };
    };
    const own = openServiceToken(defaultConfig.keystoneAuthtoken, { send, close: () => {} });
    assert.equal(await own.get(0), 'own-1');
    for (const _validation of [1, 2]) {
      own.discard('own-1');
      assert.equal(await own.get(0), 'own-2');
    }
  });

  test('is replaced before it expires', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      standIn.behaviour.ownLifetime = 20;
      const tokens = [standIn.issue(), standIn.issue()];
      for (const token of tokens) await outcome(token);
      assert.deepEqual(standIn.requests(), ['POST', `GET ${tokens[0]}`, 'POST', `GET ${tokens[1]}`]);
    });
  });

  test('if Keystone never accepts it, the request gets 503 after two attempts', async () => {
    await withKeystone({}, async ({ standIn, outcome, logged }) => {
      standIn.behaviour.ownLifetime = -1;
      const token = standIn.issue();
      assert.equal(await outcome(token), unavailable);
      assert.deepEqual(standIn.requests(), ['POST', `GET ${token}`, 'POST', `GET ${token}`]);
      assert.match(logged.join(), /refuses the token of the service user/);
    });
  });

  test('with a wrong password the request gets 503, and the log says what to correct, without the password', async () => {
    await withKeystone({ password: 'guess-4711' }, async ({ standIn, outcome, logged }) => {
      assert.equal(await outcome(standIn.issue()), unavailable);
      assert.match(logged.join(), /warn: .*does not accept the service user.*\[keystone_authtoken\]/);
      assert.doesNotMatch(logged.join(), /guess-4711/);
    });
  });
});

suite('service tokens', () => {
  test('allow an expired token, with a role of service_token_roles', async () => {
    await withKeystone({}, async ({ standIn, outcome, logged }) => {
      const expired = standIn.issue({ user: 'alice', lifetime: -5 });
      const service = standIn.issue({ user: 'nova', roles: ['service'], project: 'service' });
      assert.equal(await outcome(expired), 'unauthorized');
      const identity = identityOf(await outcome(expired, { 'x-service-token': service }));
      assert.equal(identity.userId, 'alice');
      assert.deepEqual(identity.service, {
        userId: 'nova',
        userDomainId: 'default',
        projectId: 'service',
        projectDomainId: 'default',
        roles: ['service'],
      });
      assert.equal(
        await outcome(expired),
        'unauthorized',
        'the result with a service token does not count for requests without one',
      );
      assert.equal(await outcome(undefined, { 'x-service-token': service }), 'unauthorized');
      assert.deepEqual(logged, []);
    });
  });

  test('must be valid and have the role, unless the configuration allows others', async () => {
    for (const required of [true, false]) {
      await withKeystone({ serviceTokenRolesRequired: required }, async ({ standIn, outcome, logged }) => {
        const good = standIn.issue({ user: 'alice' });
        const expired = standIn.issue({ lifetime: -5 });
        const member = standIn.issue({ user: 'mallory', roles: ['member'] });
        const bad = { 'x-service-token': 'nonsense' };
        const roleless = { 'x-service-token': member };
        assert.equal(await outcome(good, bad), 'unauthorized');
        assert.equal(userOf(await outcome(good, roleless)), required ? 'unauthorized' : 'alice');
        assert.equal(await outcome(expired, roleless), 'unauthorized', 'an expired token needs the role in any case');
        assert.equal(await outcome(good, { 'x-service-token': standIn.issue({ lifetime: -5 }) }), 'unauthorized');
        assert.equal(logged.length, required ? 0 : 1);
      });
    }
  });

  test('are ignored where they are invalid, with delay_auth_decision', async () => {
    await withKeystone({ delayAuthDecision: true }, async ({ standIn, outcome }) => {
      const identity = identityOf(await outcome(standIn.issue({ user: 'alice' }), { 'x-service-token': 'nonsense' }));
      assert.deepEqual([identity.userId, identity.service], ['alice', undefined]);
    });
  });

  test('an identity expires with its token, or later with the token of a service that has the role', async () => {
    await withKeystone({ serviceTokenRolesRequired: false }, async ({ standIn, outcome }) => {
      const short = standIn.issue({ user: 'alice', lifetime: 100 });
      const endOf = async (roles: readonly string[]): Promise<number> => {
        const service = standIn.issue({ user: 'nova', roles, lifetime: 5_000 });
        return identityOf(await outcome(short, { 'x-service-token': service })).expiresAtMs ?? 0;
      };
      const own = identityOf(await outcome(short)).expiresAtMs ?? 0;
      assert.ok(own > Date.now());
      assert.equal(await endOf(['member']), own);
      assert.ok((await endOf(['service'])) > own + 4_000_000);
    });
  });

  test('the roles can be configured', async () => {
    await withKeystone({ serviceTokenRoles: ['robot', 'service'] }, async ({ standIn, outcome }) => {
      const service = { 'x-service-token': standIn.issue({ roles: ['robot'] }) };
      assert.equal(userOf(await outcome(standIn.issue({ user: 'alice', lifetime: -5 }), service)), 'alice');
    });
  });
});
