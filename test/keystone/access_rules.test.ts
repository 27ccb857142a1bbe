/** Tokens that are valid only for some requests. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { userOf, withKeystone } from './keystones.ts';

suite('access rules of application credentials', () => {
  const rule = (method: string, path: string, service = 'placement') => ({ method, path, service });

  test('allow exactly the requests that they name', async () => {
    await withKeystone({ serviceType: 'placement' }, async ({ standIn, keystone }) => {
      const cases: readonly (readonly [
        allowed: boolean,
        method: string,
        path: string,
        ...ReturnType<typeof rule>[],
      ])[] = [
        [false, 'GET', '/traits'],
        [true, 'GET', '/traits', rule('GET', '/traits')],
        [false, 'PUT', '/traits', rule('GET', '/traits')],
        [false, 'GET', '/traits', rule('GET', '/traits', 'compute')],
        [false, 'GET', '/traits/X', rule('GET', '/traits')],
        [true, 'GET', '/traits/X', rule('GET', '/traits/{name}')],
        [true, 'GET', '/traits/X', rule('GET', '/traits/*')],
        [false, 'GET', '/traits/X/Y', rule('GET', '/traits/*')],
        [true, 'GET', '/a/b/c', rule('GET', '/x'), rule('GET', '/**')],
        [true, 'GET', '/a/b/c', rule('GET', '/**/c')],
        [false, 'GET', '/a/b/c', rule('GET', '/**/d')],
        // A regular expression with six of these would take almost forever.
        [false, 'GET', `/${'a'.repeat(400)}`, rule('GET', '/**a**a**a**a**a**aX')],
        [true, 'GET', `/${'a'.repeat(400)}X`, rule('GET', '/**a**a**a**a**a**aX')],
        [false, 'GET', '/tra.ts', rule('GET', '/traits')],
        [false, 'GET', '/traits', rule('GET', '/tra.ts')],
      ];
      for (const [allowed, method, path, ...accessRules] of cases) {
        const headers = new Headers({ 'x-auth-token': standIn.issue({ user: 'alice', accessRules }) });
        const outcome = userOf(await keystone.authenticate(headers, { method, path }));
        assert.equal(outcome, allowed ? 'alice' : 'unauthorized', JSON.stringify([method, path, accessRules]));
      }
    });
  });

  test('do not restrict a service that acts for the user', async () => {
    await withKeystone({ serviceType: 'placement' }, async ({ standIn, outcome }) => {
      const token = standIn.issue({ user: 'alice', accessRules: [rule('GET', '/servers', 'compute')] });
      assert.equal(await outcome(token), 'unauthorized');
      const rubbish = { 'x-service-token': 'rubbish' };
      assert.equal(await outcome(token, rubbish), 'unauthorized');
      const service = standIn.issue({ roles: ['service'] });
      assert.equal(userOf(await outcome(token, { 'x-service-token': service })), 'alice');
    });
  });

  test('refuse the token if the service type is not configured, or is unknown in the catalog', async () => {
    for (const serviceType of [undefined, 'warehouse']) {
      await withKeystone({ serviceType }, async ({ standIn, outcome }) => {
        const accessRules = [rule('GET', '/**'), rule('GET', '/**', 'warehouse')];
        assert.equal(await outcome(standIn.issue({ accessRules })), 'unauthorized');
        assert.equal(userOf(await outcome(standIn.issue({ user: 'alice' }))), 'alice');
      });
    }
  });
});
