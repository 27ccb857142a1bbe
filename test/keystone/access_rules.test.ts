/** Tokens that are valid only for some requests. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { isAccessAllowed, matchesRule, mostSteps } from '../../src/access/keystone/access_rules.ts';
import type { Token } from '../../src/access/keystone/token.ts';
import { noIdentity } from '../../src/rest/identity.ts';
import { randomFrom, seedFor } from '../races/random.ts';
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

  test('do not restrict a service without a role of service_token_roles, where such services are accepted', async () => {
    const settings = { serviceType: 'placement', serviceTokenRolesRequired: false };
    await withKeystone(settings, async ({ standIn, outcome }) => {
      const token = standIn.issue({ user: 'alice', accessRules: [rule('GET', '/servers', 'compute')] });
      const service = standIn.issue({ roles: ['member'] });
      assert.equal(userOf(await outcome(token, { 'x-service-token': service })), 'alice');
    });
  });

  test('refuse the token if the service type is not configured, or is unknown in the catalog', async () => {
    for (const serviceType of [undefined, 'warehouse']) {
      await withKeystone({ serviceType }, async ({ standIn, outcome }) => {
        const accessRules = [rule('GET', '/**'), rule('GET', '/**', 'warehouse')];
        assert.equal(await outcome(standIn.issue({ accessRules })), 'unauthorized');
        const service = { 'x-service-token': standIn.issue({ roles: ['service'] }) };
        assert.equal(await outcome(standIn.issue({ accessRules }), service), 'unauthorized');
        assert.equal(userOf(await outcome(standIn.issue({ user: 'alice' }))), 'alice');
      });
    }
  });

  test('match as the regular expressions of keystonemiddleware do', (t) => {
    const random = randomFrom(seedFor(t));
    const some = (pieces: readonly string[], most: number) =>
      Array.from({ length: random.below(most + 1) }, () => random.pick(pieces)).join('');
    const matched = { true: 0, false: 0 };
    for (let round = 0; round < 20_000; round += 1) {
      // So that what is compared begins anywhere in the words of 32 bits, and sometimes with a wildcard.
      const start = random.below(4) === 0 ? '' : `/${'x'.repeat(random.below(70))}`;
      const rule = start + some(['a', 'b', '/', '.', '*', '**', '{n}', '{', '}'], 9);
      const path = start + some(['a', 'b', '/', '.', 'x'], 9);
      const expected = regularExpression(rule).test(path);
      assert.equal(matchesRule(rule, path, { left: mostSteps }), expected, `${rule} ${path}`);
      matched[expected ? 'true' : 'false'] += 1;
    }
    assert.ok(matched.true > 1000 && matched.false > 1000, JSON.stringify(matched));
  });

  test('matching takes steps by the length of rule and path alone, whatever is in them', () => {
    const path = `/${'a'.repeat(100_000)}`;
    const wide = ['*a', 'a*', '**a', '{n}a', '***a', '*'].map((piece) => `/${piece.repeat(128)}`.slice(0, 127));
    for (const rule of [...wide, ...wide.map((each) => `${each}X`)]) {
      const steps = { left: mostSteps };
      matchesRule(rule, path, steps);
      assert.ok(mostSteps - steps.left <= 128 + 5 * path.length, `${rule} took ${mostSteps - steps.left} steps`);
      const few = { left: 1000 };
      assert.equal(matchesRule(rule, path, few), false);
      assert.ok(few.left >= -128, `it went on for ${-few.left} steps`);
    }
    const steps = { left: 100 };
    matchesRule(`/${'a'.repeat(100)}`, '', steps);
    assert.equal(steps.left, -1, 'a rule takes them also if the path ends at once');
  });

  test('allow nothing that all of them together have not allowed after a number of steps', () => {
    const path = `/${'a'.repeat(100_000)}`;
    const isAllowed = (...paths: readonly string[]) => {
      const accessRules = paths.map((each) => rule('GET', each));
      const token: Token = { identity: noIdentity, expiresAtMs: 0, accessRules, serviceTypes: undefined };
      return isAccessAllowed(token, { method: 'GET', path }, 'placement', false);
    };
    const widest = `/${'*a'.repeat(63)}X`;
    assert.ok(isAllowed(widest, '/**'));
    assert.ok(!isAllowed(...Array(50).fill(widest), '/**'));
    // Rules that are about other paths take almost none.
    assert.ok(isAllowed(...Array(5000).fill('/resource_providers/{uuid}/inventories/*'), '/**'));
  });
});

/**
 * As keystonemiddleware makes it, except that every other character stands for itself: there `.` in a rule is any character, and a brace
 * without the other one is left out.
 */
const regularExpression = (rule: string): RegExp => {
  const parts = rule.match(/\{[^}]*\}|\*(?=$|[^*])|\*\*|./gs) ?? [];
  const expression = parts.map((part) => {
    if (part === '**') return '.*';
    return part === '*' || part.length > 1 ? '[^/]+' : part.replace(/\W/, '\\$&');
  });
  return new RegExp(`^${expression.join('')}$`, 's');
};
