import type { Scope } from './evaluate.ts';

/** A rule that holds unless a policy file has a rule of the same name. */
export type RuleDefault = {
  readonly name: string;
  /** In the rule language. */
  readonly check: string;
  /**
   * The scopes of tokens that the rule allows; undefined for a rule that only other rules refer to, which allows any.
   */
  readonly scopeTypes: readonly Scope[] | undefined;
  /**
   * The default of older releases: with `enforce_new_defaults = false` requests that it allows pass as well. A rule in
   * a file may have its name.
   */
  readonly deprecated: { readonly name: string; readonly check: string } | undefined;
  /** The requests that it decides, `GET /resource_providers`. */
  readonly operations: readonly string[];
};

const project: readonly Scope[] = ['project'];
/** The name is upstream's, with `rule:` in it. */
const formerly = { name: 'rule:admin_api', check: 'role:admin' };

const base = (name: string, check: string): RuleDefault => ({
  name,
  check,
  scopeTypes: project,
  deprecated: formerly,
  operations: [],
});

const rule = (name: string, check: string, ...operations: readonly string[]): RuleDefault => ({
  name: `placement:${name}`,
  check: `rule:${check}`,
  scopeTypes: project,
  deprecated: undefined,
  operations,
});

const adminOrService = 'admin_or_service_api';
const provider = '/resource_providers/{uuid}';

/** Decides which tokens may read the metrics, if a token is required. Upstream has no such rule. */
export const metricsRule = rule('metrics:show', adminOrService, 'GET /metrics');

/** The rules of Placement (`placement/policies` of master) in its order. */
export const ruleDefaults: readonly RuleDefault[] = [
  { ...base('admin_api', 'role:admin'), deprecated: undefined },
  base('service_api', 'role:service'),
  base(adminOrService, 'role:admin or role:service'),
  { ...base('project_reader_api', 'role:reader and project_id:%(project_id)s'), scopeTypes: undefined },
  base('admin_or_project_reader_or_service_api', 'role:admin or rule:project_reader_api or role:service'),

  rule('resource_providers:list', adminOrService, 'GET /resource_providers'),
  rule('resource_providers:create', adminOrService, 'POST /resource_providers'),
  rule('resource_providers:show', adminOrService, `GET ${provider}`),
  rule('resource_providers:update', adminOrService, `PUT ${provider}`),
  rule('resource_providers:delete', adminOrService, `DELETE ${provider}`),

  rule('resource_classes:list', adminOrService, 'GET /resource_classes'),
  rule('resource_classes:create', adminOrService, 'POST /resource_classes'),
  rule('resource_classes:show', adminOrService, 'GET /resource_classes/{name}'),
  rule('resource_classes:update', adminOrService, 'PUT /resource_classes/{name}'),
  rule('resource_classes:delete', adminOrService, 'DELETE /resource_classes/{name}'),

  rule('resource_providers:inventories:list', adminOrService, `GET ${provider}/inventories`),
  rule('resource_providers:inventories:create', adminOrService, `POST ${provider}/inventories`),
  rule('resource_providers:inventories:show', adminOrService, `GET ${provider}/inventories/{resource_class}`),
  rule(
    'resource_providers:inventories:update',
    adminOrService,
    `PUT ${provider}/inventories`,
    `PUT ${provider}/inventories/{resource_class}`,
  ),
  rule(
    'resource_providers:inventories:delete',
    adminOrService,
    `DELETE ${provider}/inventories`,
    `DELETE ${provider}/inventories/{resource_class}`,
  ),

  rule('resource_providers:aggregates:list', adminOrService, `GET ${provider}/aggregates`),
  rule('resource_providers:aggregates:update', adminOrService, `PUT ${provider}/aggregates`),

  rule('resource_providers:usages', adminOrService, `GET ${provider}/usages`),
  rule('usages', 'admin_or_project_reader_or_service_api', 'GET /usages'),

  rule('traits:list', adminOrService, 'GET /traits'),
  rule('traits:show', adminOrService, 'GET /traits/{name}'),
  rule('traits:update', adminOrService, 'PUT /traits/{name}'),
  rule('traits:delete', adminOrService, 'DELETE /traits/{name}'),

  rule('resource_providers:traits:list', adminOrService, `GET ${provider}/traits`),
  rule('resource_providers:traits:update', adminOrService, `PUT ${provider}/traits`),
  rule('resource_providers:traits:delete', adminOrService, `DELETE ${provider}/traits`),

  rule('allocations:manage', adminOrService, 'POST /allocations'),
  rule('allocations:list', adminOrService, 'GET /allocations/{consumer_uuid}'),
  rule('allocations:update', adminOrService, 'PUT /allocations/{consumer_uuid}'),
  rule('allocations:delete', adminOrService, 'DELETE /allocations/{consumer_uuid}'),
  rule('resource_providers:allocations:list', adminOrService, `GET ${provider}/allocations`),

  rule('allocation_candidates:list', adminOrService, 'GET /allocation_candidates'),

  rule('reshaper:reshape', 'service_api', 'POST /reshaper'),

  // Ours, from microversion 2.2.
  rule('consumers:list', 'admin_or_project_reader_or_service_api', 'GET /consumers'),
  rule('consumers:show', adminOrService, 'GET /consumers/{uuid}'),
  rule('consumers:update', adminOrService, 'PUT /consumers/{uuid}'),
  rule('provider_summaries:list', adminOrService, 'GET /provider_summaries'),

  // Ours, from microversion 2.3.
  rule('allocation_candidates:explanation', adminOrService, 'GET /allocation_candidates/explanation'),
  rule('allocation_candidates:count', adminOrService, 'GET /allocation_candidates/count'),

  // Ours, from microversion 2.5.
  rule('changes:list', adminOrService, 'GET /changes'),

  // Ours, from microversion 2.6.
  rule('consumers:term', adminOrService, 'PUT /consumers/{uuid}/term'),

  // Ours, from microversion 2.7.
  {
    ...rule('allocations:place', 'placement:allocations:update'),
    // If a policy file has this rule, it decides claims by query; otherwise the rules of the write do (POST: allocations:manage).
    check: 'rule:placement:allocations:update and rule:placement:allocation_candidates:list',
  },
  rule('tokens:list', 'admin_api', 'GET /tokens'),
  rule('tokens:create', 'admin_api', 'POST /tokens'),
  rule('tokens:delete', 'admin_api', 'DELETE /tokens/{id}'),
  rule('limits:list', adminOrService, 'GET /limits'),
  rule('limits:show', 'admin_or_project_reader_or_service_api', 'GET /limits/{project_id}', 'GET /default_limits'),
  rule('limits:update', adminOrService, 'PUT /limits/{project_id}', 'PUT /default_limits'),
  rule('limits:delete', adminOrService, 'DELETE /limits/{project_id}', 'DELETE /default_limits'),
  // Required in addition to the rule of the write, if PUT or POST sets a type of [placement] uncounted_types.
  rule('allocations:uncounted', adminOrService),

  // Ours, from microversion 2.8.
  rule('waiting:list', 'admin_or_project_reader_or_service_api', 'GET /waiting'),
  rule('waiting:delete', adminOrService, 'DELETE /waiting/{consumer}'),

  // Ours, from microversion 2.9.
  rule('holdings:list', 'admin_or_project_reader_or_service_api', 'GET /holdings'),
  rule('usage_records:list', 'admin_or_project_reader_or_service_api', 'GET /usage_records', 'GET /usage_totals'),
];

/**
 * By rule, what its target is: the project and the user that the check may name. The target of any other rule is empty: there
 * `project_id:%(project_id)s` allows no request.
 */
export const targets: ReadonlyMap<string, 'the owner of the consumer' | 'the requested project'> = new Map([
  ...['manage', 'list', 'update', 'delete', 'place', 'uncounted'].map(
    (verb) => [`placement:allocations:${verb}`, 'the owner of the consumer'] as const,
  ),
  ...['show', 'update', 'term'].map((verb) => [`placement:consumers:${verb}`, 'the owner of the consumer'] as const),
  ['placement:waiting:delete', 'the owner of the consumer'],
  ['placement:consumers:list', 'the requested project'],
  ['placement:waiting:list', 'the requested project'],
  ['placement:holdings:list', 'the requested project'],
  ['placement:usage_records:list', 'the requested project'],
  ['placement:usages', 'the requested project'],
  ['placement:limits:show', 'the requested project'],
]);

const collection = '/compute/v2.1/os-services';
const service = `${collection}/{service_id}`;
const hypervisors = '/compute/v2.1/os-hypervisors';

const computeRule = (resource: string, verb: string, operation: string): RuleDefault => ({
  name: `os_compute_api:${resource}:${verb}`,
  check: 'rule:context_is_admin',
  scopeTypes: ['project'],
  deprecated: { name: `os_compute_api:${resource}`, check: 'role:admin' },
  operations: [operation],
});

/** The rules of services, hypervisors and host aggregates, as Nova names them; Nova has no `create`. */
export const computeRuleDefaults: readonly RuleDefault[] = [
  { name: 'context_is_admin', check: 'role:admin', scopeTypes: undefined, deprecated: undefined, operations: [] },
  computeRule('os-services', 'list', `GET ${collection}`),
  computeRule('os-services', 'create', `POST ${collection}`),
  computeRule('os-services', 'update', `PUT ${service}`),
  computeRule('os-services', 'delete', `DELETE ${service}`),
  computeRule('os-hypervisors', 'list', `GET ${hypervisors}`),
  computeRule('os-hypervisors', 'list-detail', `GET ${hypervisors}/detail`),
  computeRule('os-hypervisors', 'statistics', `GET ${hypervisors}/statistics`),
  computeRule('os-hypervisors', 'show', `GET ${hypervisors}/{hypervisor_id}`),
  computeRule('os-hypervisors', 'uptime', `GET ${hypervisors}/{hypervisor_id}/uptime`),
  computeRule('os-hypervisors', 'search', `GET ${hypervisors}/{pattern}/search`),
  computeRule('os-hypervisors', 'servers', `GET ${hypervisors}/{pattern}/servers`),
  { ...computeRule('os-aggregates', 'index', 'GET /compute/v2.1/os-aggregates'), deprecated: undefined },
];
