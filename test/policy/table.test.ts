/** Every rule, for every kind of token, with every setting: the defaults of Placement as one table. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { ruleDefaults } from '../../src/access/policy/defaults.ts';
import { assembleRules, decide } from '../../src/access/policy/rules.ts';
import { routes } from '../../src/api/routes.ts';
import type { Identity } from '../../src/rest/identity.ts';
import { identity } from './people.ts';

const names = ruleDefaults.map(({ name }) => name);

/** The names of the rules, written independently of the table of defaults. */
const expectedNames = [
  'admin_api service_api admin_or_service_api project_reader_api admin_or_project_reader_or_service_api',
  ...['list', 'create', 'show', 'update', 'delete'].flatMap((action) =>
    ['resource_providers', 'resource_providers:inventories', 'resource_classes'].map(
      (of) => `placement:${of}:${action}`,
    ),
  ),
  'placement:resource_providers:aggregates:list placement:resource_providers:aggregates:update',
  'placement:resource_providers:usages placement:usages',
  'placement:resource_providers:traits:list placement:resource_providers:traits:update',
  'placement:resource_providers:traits:delete placement:resource_providers:allocations:list',
  'placement:allocations:manage placement:allocations:list placement:allocations:update placement:allocations:delete',
  'placement:allocations:place',
  'placement:allocation_candidates:list placement:reshaper:reshape',
  'placement:consumers:list placement:consumers:show placement:consumers:update placement:consumers:term',
  'placement:provider_summaries:list',
  'placement:allocation_candidates:explanation placement:allocation_candidates:count placement:changes:list',
  'placement:tokens:list placement:tokens:create placement:tokens:delete',
  'placement:limits:list placement:limits:show placement:limits:update placement:limits:delete',
  'placement:allocations:uncounted',
  'placement:waiting:list placement:waiting:delete',
  'placement:holdings:list placement:usage_records:list',
  'placement:traits:list placement:traits:show placement:traits:update placement:traits:delete',
].flatMap((line) => line.split(' '));

const scopes: Readonly<Record<string, Partial<Identity>>> = {
  'requested project': { projectId: 'requested' },
  'other project': { projectId: 'other' },
  domain: { projectId: undefined, domainId: 'd1' },
  system: { projectId: undefined, systemScope: 'all' },
  unscoped: { projectId: undefined },
};

const roleSets = [
  [],
  ['reader'],
  ['member', 'reader'],
  ['manager'],
  ['admin'],
  ['ADMIN'],
  ['admin', 'member', 'reader'],
  ['service'],
  ['Service'],
  ['admin', 'service'],
  ['administrator', 'services', 'admin_api'],
];

type Case = {
  readonly rule: string;
  readonly roles: readonly string[];
  readonly scope: string;
  readonly newDefaults: boolean;
  readonly enforceScope: boolean;
};

/** The result that the contract defines, computed without the rule language. */
function expected({ rule, roles, scope, newDefaults, enforceScope }: Case): boolean {
  const has = (role: string) => roles.some((held) => held.toLowerCase() === role);
  const forProjects = rule !== 'project_reader_api';
  if (forProjects && enforceScope && (scope === 'system' || scope === 'domain')) return false;
  const readsOwn = has('reader') && scope === 'requested project';
  switch (rule) {
    case 'admin_api':
    case 'placement:tokens:list':
    case 'placement:tokens:create':
    case 'placement:tokens:delete':
      return has('admin');
    case 'project_reader_api':
      return readsOwn || (!newDefaults && has('admin'));
    case 'service_api':
    case 'placement:reshaper:reshape':
      return has('service') || (!newDefaults && has('admin'));
    case 'placement:usages':
    case 'placement:consumers:list':
    case 'placement:limits:show':
    case 'placement:waiting:list':
    case 'placement:holdings:list':
    case 'placement:usage_records:list':
    case 'admin_or_project_reader_or_service_api':
      return has('admin') || has('service') || readsOwn;
    default:
      return has('admin') || has('service');
  }
}

test('the rules are those of Placement, and ours from 2.2 on', () => {
  assert.deepEqual(names.toSorted(), expectedNames.toSorted());
});

suite('rule x roles x scope', () => {
  for (const newDefaults of [true, false]) {
    for (const enforceScope of [true, false]) {
      test(`enforce_new_defaults = ${newDefaults}, enforce_scope = ${enforceScope}`, () => {
        const rules = assembleRules([], {
          enforceNewDefaults: newDefaults,
          enforceScope,
          policyDefaultRule: 'default',
        });
        for (const rule of expectedNames) {
          for (const roles of roleSets) {
            for (const [scope, of] of Object.entries(scopes)) {
              const { allowed } = decide(rules, rule, identity({ ...of, roles }), { project_id: 'requested' });
              const one = { rule, roles, scope, newDefaults, enforceScope };
              assert.equal(allowed, expected(one), JSON.stringify(one));
            }
          }
        }
      });
    }
  }
});

test('every request checks the rule with its name', () => {
  const parameters: Readonly<Record<string, string>> = { ':uuid': '{uuid}', ':consumer_uuid': '{consumer_uuid}' };
  const operationOf = (method: string, path: string): string =>
    `${method} ${path.replace(/:\w+(?:\{[^}]*\})?/g, (parameter) => parameters[parameter] ?? '{}')}`;
  const anonymous = (operation: string): string => operation.replaceAll(/\{[^}]*\}/g, '{}');
  const byOperation = new Map(
    ruleDefaults.flatMap(({ name, operations }) => operations.map((operation) => [anonymous(operation), name])),
  );
  const operations = new Set<string>();
  for (const { method, path, policy } of routes) {
    const operation = anonymous(operationOf(method, path));
    assert.equal(policy, path === '/' ? undefined : byOperation.get(operation), operation);
    operations.add(operation);
  }
  for (const [operation, name] of byOperation)
    assert.ok(operations.has(operation), `${operation} of ${name} is not a request`);
});

test('an unknown rule denies, also for administrators', () => {
  const settings = { enforceNewDefaults: true, enforceScope: true, policyDefaultRule: 'default' };
  const everything = identity({ roles: ['admin', 'service'] });
  const decision = decide(assembleRules([], settings), 'placement:nothing', everything, {});
  assert.deepEqual(decision, { allowed: false, because: 'unknown rule' });
});
