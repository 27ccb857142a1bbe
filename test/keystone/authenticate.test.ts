/** What is asked of Keystone, and what comes of its answers. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openTokenCache } from '../../src/keystone/token_cache.ts';
import { identityOf, userOf, withKeystone } from './keystones.ts';

const unavailable = 'Keystone is unavailable';

suite('who it is', () => {
  test('everything that rules may ask about comes from the token', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      const token = standIn.issue({ user: 'alice', roles: ['admin', 'reader'], project: 'p1' });
      assert.deepEqual(identityOf(await outcome(token)), {
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

  test('no token, an empty one and an unknown one are refused; white space around a token does not matter', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      assert.equal(await outcome(), 'unauthorized');
      assert.equal(await outcome(''), 'unauthorized');
      assert.deepEqual(standIn.asked(), [], 'for these Keystone is not asked');
      assert.equal(await outcome('nonsense'), 'unauthorized');
      assert.equal(userOf(await outcome(undefined, { 'x-storage-token': standIn.issue({ user: 'bob' }) })), 'bob');
      assert.equal(userOf(await outcome(` ${standIn.issue({ user: 'carol' })} `)), 'carol');
      assert.equal(await outcome(standIn.issue({ lifetime: -1 })), 'unauthorized');
    });
  });
});

suite('how often Keystone is asked', () => {
  test('once for each token; the token of the service is obtained once', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      const [one, two] = [standIn.issue(), standIn.issue()];
      for (const token of [one, two, one, two, one]) await outcome(token);
      assert.deepEqual(standIn.asked(), ['POST', `GET ${one}`, `GET ${two}`]);
    });
  });

  test('requests with the same unknown token share one question, and all questions one token of the service', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      standIn.behaviour.delayMs = 50;
      const [one, two] = [standIn.issue({ user: 'one' }), standIn.issue({ user: 'two' })];
      const tokens = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? one : two));
      const outcomes = await Promise.all(tokens.map((token) => outcome(token)));
      assert.deepEqual(
        outcomes.map(userOf),
        tokens.map((token) => (token === one ? 'one' : 'two')),
      );
      assert.deepEqual(standIn.asked().toSorted(), [`GET ${one}`, `GET ${two}`, 'POST'].toSorted());
    });
  });

  test('again after token_cache_time; a token that was revoked counts until then', async () => {
    await withKeystone({ tokenCacheTime: 1 }, async ({ standIn, outcome }) => {
      const token = standIn.issue({ user: 'alice' });
      await outcome(token);
      standIn.revoke(token);
      assert.equal(userOf(await outcome(token)), 'alice');
      await sleep(1050);
      assert.equal(await outcome(token), 'unauthorized');
    });
  });

  test('each time with token_cache_time = -1, and for tokens that are not valid', async () => {
    await withKeystone({ tokenCacheTime: -1 }, async ({ standIn, outcome }) => {
      const token = standIn.issue();
      for (let time = 0; time < 3; time += 1) await outcome(token);
      assert.equal(standIn.asked().filter((request) => request === `GET ${token}`).length, 3);
    });
    await withKeystone({}, async ({ standIn, outcome }) => {
      for (let time = 0; time < 2; time += 1) await outcome('nonsense');
      assert.deepEqual(standIn.asked(), ['POST', 'GET nonsense', 'GET nonsense']);
    });
  });

  test('not at all for a token that expired while it was remembered', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      const token = standIn.issue({ user: 'alice', lifetime: 0.3 });
      assert.equal(userOf(await outcome(token)), 'alice');
      standIn.asked();
      await sleep(350);
      assert.equal(await outcome(token), 'unauthorized');
      assert.deepEqual(standIn.asked(), []);
    });
  });

  test('the cache has a bound: the oldest token makes room', () => {
    const cache = openTokenCache<number>({ seconds: 60, limit: 3 });
    for (const [index, key] of ['a', 'b', 'a', 'c', 'd'].entries()) cache.set(key, index);
    assert.deepEqual(['a', 'b', 'c', 'd'].map(cache.get), [2, undefined, 3, 4]);
    cache.set('e', 5);
    assert.deepEqual(['a', 'c', 'd', 'e'].map(cache.get), [undefined, 3, 4, 5]);
  });
});

suite('the token of the service', () => {
  test('is obtained again, once, when Keystone no longer takes it', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      await outcome(standIn.issue());
      standIn.revokeOwn();
      standIn.asked();
      const token = standIn.issue({ user: 'alice' });
      assert.equal(userOf(await outcome(token)), 'alice');
      assert.deepEqual(standIn.asked(), [`GET ${token}`, 'POST', `GET ${token}`]);
    });
  });

  test('is replaced before it ends', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
      standIn.behaviour.ownLifetime = 20;
      const tokens = [standIn.issue(), standIn.issue()];
      for (const token of tokens) await outcome(token);
      assert.deepEqual(standIn.asked(), ['POST', `GET ${tokens[0]}`, 'POST', `GET ${tokens[1]}`]);
    });
  });

  test('where Keystone never takes it the request gets 503, after two attempts', async () => {
    await withKeystone({}, async ({ standIn, outcome, logged }) => {
      standIn.behaviour.ownLifetime = -1;
      const token = standIn.issue();
      assert.equal(await outcome(token), unavailable);
      assert.deepEqual(standIn.asked(), ['POST', `GET ${token}`, 'POST', `GET ${token}`]);
      assert.match(logged.join(), /does not take the token of the service user/);
    });
  });

  test('with a wrong password too, and the log says what to correct, without the password', async () => {
    await withKeystone({ password: 'guess-4711' }, async ({ standIn, outcome, logged }) => {
      assert.equal(await outcome(standIn.issue()), unavailable);
      assert.match(logged.join(), /error: .*does not take the service user.*\[keystone_authtoken\]/);
      assert.doesNotMatch(logged.join(), /guess-4711/);
    });
  });
});

suite('service tokens', () => {
  test('let an expired token pass, with a role of service_token_roles', async () => {
    await withKeystone({}, async ({ standIn, outcome }) => {
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
      assert.equal(await outcome(expired), 'unauthorized', 'what was remembered for the service is not for others');
      assert.equal(await outcome(undefined, { 'x-service-token': service }), 'unauthorized');
    });
  });

  test('must be valid and have the role, unless the configuration is lenient', async () => {
    for (const required of [true, false]) {
      await withKeystone({ serviceTokenRolesRequired: required }, async ({ standIn, outcome, logged }) => {
        const good = standIn.issue({ user: 'alice' });
        const expired = standIn.issue({ lifetime: -5 });
        const member = standIn.issue({ user: 'mallory', roles: ['member'] });
        const bad = { 'x-service-token': 'nonsense' };
        const roleless = { 'x-service-token': member };
        assert.equal(await outcome(good, bad), 'unauthorized');
        assert.equal(userOf(await outcome(good, roleless)), required ? 'unauthorized' : 'alice');
        assert.equal(await outcome(expired, roleless), 'unauthorized', 'the role is needed for that in any case');
        assert.equal(await outcome(good, { 'x-service-token': standIn.issue({ lifetime: -5 }) }), 'unauthorized');
        assert.equal(logged.length, required ? 0 : 1);
      });
    }
  });

  test('the roles that count can be configured', async () => {
    await withKeystone({ serviceTokenRoles: ['robot', 'service'] }, async ({ standIn, outcome }) => {
      const service = { 'x-service-token': standIn.issue({ roles: ['robot'] }) };
      assert.equal(userOf(await outcome(standIn.issue({ user: 'alice', lifetime: -5 }), service)), 'alice');
    });
  });
});
