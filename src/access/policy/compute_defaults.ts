import type { RuleDefault } from './defaults.ts';

const collection = '/compute/v2.1/os-services';
const service = `${collection}/{service_id}`;
const hypervisors = '/compute/v2.1/os-hypervisors';

const rule = (resource: string, verb: string, operation: string): RuleDefault => ({
  name: `os_compute_api:${resource}:${verb}`,
  check: 'rule:context_is_admin',
  scopeTypes: ['project'],
  deprecated: { name: `os_compute_api:${resource}`, check: 'role:admin' },
  operations: [operation],
});

/** The rules of services, hypervisors and host aggregates, as Nova names them; `create` is this service's own. */
export const computeRuleDefaults: readonly RuleDefault[] = [
  { name: 'context_is_admin', check: 'role:admin', scopeTypes: undefined, deprecated: undefined, operations: [] },
  rule('os-services', 'list', `GET ${collection}`),
  rule('os-services', 'create', `POST ${collection}`),
  rule('os-services', 'update', `PUT ${service}`),
  rule('os-services', 'delete', `DELETE ${service}`),
  rule('os-hypervisors', 'list', `GET ${hypervisors}`),
  rule('os-hypervisors', 'list-detail', `GET ${hypervisors}/detail`),
  rule('os-hypervisors', 'statistics', `GET ${hypervisors}/statistics`),
  rule('os-hypervisors', 'show', `GET ${hypervisors}/{hypervisor_id}`),
  rule('os-hypervisors', 'uptime', `GET ${hypervisors}/{hypervisor_id}/uptime`),
  rule('os-hypervisors', 'search', `GET ${hypervisors}/{pattern}/search`),
  rule('os-hypervisors', 'servers', `GET ${hypervisors}/{pattern}/servers`),
  { ...rule('os-aggregates', 'index', 'GET /compute/v2.1/os-aggregates'), deprecated: undefined },
];
