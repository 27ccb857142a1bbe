/**
 * Every operation of the API as a request, and who may send it: facts, taken by hand from `placement/policies/*.py` of OpenStack
 * Placement and `nova/policies/services.py`, `hypervisors.py` and `aggregates.py`. Nothing here reads the policy of the service.
 */

/** Who may send a request by default, in the words of upstream's `base.py`. */
export type Allowed =
  /** Needs no token. */
  | 'everybody'
  /** `rule:admin_or_service_api`: "role:admin or role:service" */
  | 'admin or service'
  /** `rule:service_api`: "role:service" */
  | 'service'
  /** `rule:admin_or_project_reader_or_service_api`: also "role:reader and project_id:%(project_id)s" */
  | 'admin, service or reader of the project'
  /** `rule:admin_api` and Nova's `rule:context_is_admin`: "role:admin" */
  | 'admin';

/** The resources of a request, created for each request: UUIDs, names and generations. */
export type Scene = {
  /** A resource provider with inventory and an allocation, and one without both. */
  readonly host: string;
  readonly hostGeneration: number;
  readonly spare: string;
  /** A consumer of 1 VCPU of the host in the project p1; and two UUIDs that nothing has. */
  readonly vm: string;
  readonly unused: string;
  readonly unknown: string;
  /** A custom resource class and a custom trait that nothing has, and names that are free. */
  readonly class: string;
  readonly trait: string;
  readonly freeName: string;
  /** A compute service by its two ids and the name of its host, which is a resource provider, too. */
  readonly service: string;
  readonly serviceId: string;
  readonly serviceHost: string;
  readonly hypervisor: string;
};

/** A request as every caller sends it. */
export type Operation = {
  readonly method: string;
  /** With the names of fields of the scene: `/resource_providers/{host}`. */
  readonly path: string;
  readonly query?: string;
  /** The microversion, `placement 1.39` or `compute 2.53`; empty where there is none. */
  readonly version: string;
  readonly allowed: Allowed;
  /** The project that the rule compares with the caller's; undefined where the request concerns all. */
  readonly project?: string;
  readonly body?: (scene: Scene) => unknown;
  /** The status for the first caller that may, if it is not a success. */
  readonly status?: number;
};

type More = Pick<Operation, 'query' | 'project' | 'body' | 'status'>;

const at =
  (service: string, allowed: Allowed) =>
  (version: string, operation: string, more: More = {}): Operation => {
    const [method = '', path = ''] = operation.split(' ');
    return { method, path, version: version && `${service} ${version}`, allowed, ...more };
  };

const everybody = at('placement', 'everybody');
const adminOrService = at('placement', 'admin or service');
const onlyService = at('placement', 'service');
const alsoReaders = at('placement', 'admin, service or reader of the project');
const admin = at('placement', 'admin');
const novaAdmin = at('compute', 'admin');

const owner = { project_id: 'p1', user_id: 'ada' };
const stock = (total: number) => ({ VCPU: { total } });
const stocked = ({ hostGeneration }: Scene) => ({
  resource_provider_generation: hostGeneration,
  inventories: stock(9),
});
const onHost = ({ host }: Scene) => ({ [host]: { resources: { VCPU: 1 } } });
const listed = ({ host }: Scene) => [{ resource_provider: { uuid: host }, resources: { VCPU: 1 } }];
const claim = (scene: Scene) => ({ allocations: onHost(scene), ...owner, consumer_generation: null });
const typedClaim = (scene: Scene) => ({ ...claim(scene), consumer_type: 'INSTANCE' });
const byQuery = { candidates: 'resources=VCPU:1', ...owner, consumer_generation: null, consumer_type: 'INSTANCE' };
const reshape = (typed: object) => (scene: Scene) => ({
  inventories: { [scene.host]: stocked(scene) },
  allocations: { [scene.vm]: { allocations: onHost(scene), ...owner, consumer_generation: 1, ...typed } },
});
const candidates = { query: 'resources=VCPU:1' };

export const operations: readonly Operation[] = [
  everybody('', 'GET /'),
  everybody('', 'GET /compute'),
  everybody('', 'GET /compute/'),
  everybody('', 'GET /compute/v2.1'),
  everybody('', 'GET /compute/v2.1/'),

  // resource_provider.py
  adminOrService('1.0', 'GET /resource_providers'),
  adminOrService('1.39', 'GET /resource_providers', { query: 'in_tree={host}&resources=VCPU:1' }),
  adminOrService('1.0', 'POST /resource_providers', { body: ({ freeName }) => ({ name: freeName }) }),
  adminOrService('1.20', 'POST /resource_providers', {
    body: ({ freeName, host }) => ({ name: freeName, parent_provider_uuid: host }),
  }),
  adminOrService('1.0', 'GET /resource_providers/{host}'),
  adminOrService('1.39', 'GET /resource_providers/{unknown}', { status: 404 }),
  adminOrService('1.0', 'PUT /resource_providers/{host}', { body: ({ freeName }) => ({ name: freeName }) }),
  adminOrService('1.39', 'PUT /resource_providers/{unknown}', { body: () => ({ name: 'x' }), status: 404 }),
  adminOrService('1.0', 'DELETE /resource_providers/{spare}'),
  adminOrService('1.39', 'DELETE /resource_providers/{unknown}', { status: 404 }),

  // resource_class.py
  adminOrService('1.2', 'GET /resource_classes'),
  adminOrService('1.2', 'POST /resource_classes', { body: ({ freeName }) => ({ name: freeName }) }),
  adminOrService('1.2', 'GET /resource_classes/{class}'),
  adminOrService('1.2', 'PUT /resource_classes/{class}', { body: ({ freeName }) => ({ name: freeName }) }),
  adminOrService('1.7', 'PUT /resource_classes/{freeName}'),
  adminOrService('1.2', 'DELETE /resource_classes/{class}'),
  adminOrService('1.39', 'DELETE /resource_classes/VCPU', { status: 400 }),

  // inventory.py
  adminOrService('1.0', 'GET /resource_providers/{host}/inventories'),
  adminOrService('1.0', 'POST /resource_providers/{host}/inventories', {
    body: () => ({ resource_class: 'DISK_GB', total: 5 }),
  }),
  adminOrService('1.39', 'PUT /resource_providers/{host}/inventories', { body: stocked }),
  adminOrService('1.5', 'DELETE /resource_providers/{spare}/inventories'),
  adminOrService('1.0', 'GET /resource_providers/{host}/inventories/VCPU'),
  adminOrService('1.0', 'PUT /resource_providers/{host}/inventories/VCPU', {
    body: ({ hostGeneration }) => ({ resource_provider_generation: hostGeneration, total: 9 }),
  }),
  adminOrService('1.0', 'DELETE /resource_providers/{spare}/inventories/VCPU'),
  adminOrService('1.39', 'DELETE /resource_providers/{unknown}/inventories', { status: 404 }),

  // aggregate.py
  adminOrService('1.1', 'GET /resource_providers/{host}/aggregates'),
  adminOrService('1.1', 'PUT /resource_providers/{host}/aggregates', { body: ({ unused }) => [unused] }),
  adminOrService('1.19', 'PUT /resource_providers/{host}/aggregates', {
    body: ({ unused, hostGeneration }) => ({ aggregates: [unused], resource_provider_generation: hostGeneration }),
  }),

  // usage.py
  adminOrService('1.0', 'GET /resource_providers/{host}/usages'),
  alsoReaders('1.9', 'GET /usages', { query: 'project_id=p1', project: 'p1' }),
  alsoReaders('1.38', 'GET /usages', { query: 'project_id=p1&user_id=ada&consumer_type=all', project: 'p1' }),
  alsoReaders('1.39', 'GET /usages', { query: 'project_id=p2', project: 'p2' }),
  // Of a repeated parameter the last one counts, for the rule as for the answer.
  alsoReaders('1.9', 'GET /usages', { query: 'project_id=p1&project_id=p2', project: 'p2' }),
  alsoReaders('1.39', 'GET /usages', { status: 400 }),

  // trait.py
  adminOrService('1.6', 'GET /traits'),
  adminOrService('1.6', 'GET /traits/{trait}'),
  adminOrService('1.6', 'PUT /traits/{freeName}'),
  adminOrService('1.6', 'DELETE /traits/{trait}'),
  adminOrService('1.6', 'GET /resource_providers/{host}/traits'),
  adminOrService('1.6', 'PUT /resource_providers/{host}/traits', {
    body: ({ trait, hostGeneration }) => ({ traits: [trait], resource_provider_generation: hostGeneration }),
  }),
  adminOrService('1.6', 'DELETE /resource_providers/{host}/traits'),

  // allocation.py
  adminOrService('1.13', 'POST /allocations', {
    body: (scene) => ({ [scene.unused]: { allocations: onHost(scene), ...owner } }),
  }),
  adminOrService('1.38', 'POST /allocations', { body: (scene) => ({ [scene.unused]: typedClaim(scene) }) }),
  adminOrService('2.4', 'POST /allocations', { body: ({ unused }) => ({ [unused]: byQuery }) }),
  adminOrService('1.0', 'GET /allocations/{vm}'),
  adminOrService('1.39', 'GET /allocations/{unknown}'),
  adminOrService('1.0', 'PUT /allocations/{unused}', { body: (scene) => ({ allocations: listed(scene) }) }),
  adminOrService('1.8', 'PUT /allocations/{unused}', { body: (scene) => ({ allocations: listed(scene), ...owner }) }),
  adminOrService('1.12', 'PUT /allocations/{unused}', { body: (scene) => ({ allocations: onHost(scene), ...owner }) }),
  adminOrService('1.28', 'PUT /allocations/{unused}', { body: claim }),
  adminOrService('1.38', 'PUT /allocations/{unused}', { body: typedClaim }),
  adminOrService('2.4', 'PUT /allocations/{unused}', { body: () => byQuery }),
  adminOrService('2.4', 'PUT /allocations/{unused}', { body: (scene) => ({ ...typedClaim(scene), dry_run: true }) }),
  adminOrService('1.0', 'DELETE /allocations/{vm}'),
  adminOrService('1.39', 'DELETE /allocations/{unknown}', { status: 404 }),
  adminOrService('1.0', 'GET /resource_providers/{host}/allocations'),

  // allocation_candidate.py
  adminOrService('1.10', 'GET /allocation_candidates', candidates),
  adminOrService('1.39', 'GET /allocation_candidates', candidates),

  // reshaper.py
  onlyService('1.30', 'POST /reshaper', { body: reshape({}) }),
  onlyService('1.38', 'POST /reshaper', { body: reshape({ consumer_type: 'INSTANCE' }) }),

  // The service's own: from 2.2, and the metrics.
  alsoReaders('2.2', 'GET /consumers', { query: 'project_id=p1', project: 'p1' }),
  alsoReaders('2.6', 'GET /consumers', { query: 'project_id=p2', project: 'p2' }),
  alsoReaders('2.6', 'GET /consumers'),
  // What is on a provider may be of all projects.
  alsoReaders('2.2', 'GET /consumers', { query: 'project_id=p1&resource_provider={host}' }),
  adminOrService('2.2', 'GET /consumers/{vm}'),
  adminOrService('2.2', 'PUT /consumers/{vm}', {
    body: () => ({ project_id: 'p2', user_id: 'ada', consumer_type: 'INSTANCE', consumer_generation: 1 }),
  }),
  adminOrService('2.6', 'PUT /consumers/{vm}/term', { body: () => ({ expires_in: 600, consumer_generation: 1 }) }),
  adminOrService('2.2', 'GET /provider_summaries'),
  adminOrService('2.3', 'GET /allocation_candidates/explanation', candidates),
  adminOrService('2.3', 'GET /allocation_candidates/count', candidates),
  adminOrService('2.5', 'GET /changes'),
  admin('2.7', 'GET /tokens'),
  admin('2.7', 'POST /tokens', { body: () => ({ user_id: 'u', project_id: 'p', roles: ['member'] }) }),
  admin('2.7', 'DELETE /tokens/{unknown}', { status: 404 }),
  adminOrService('2.7', 'GET /limits'),
  alsoReaders('2.7', 'GET /limits/p1', { project: 'p1' }),
  alsoReaders('2.7', 'GET /default_limits'),
  adminOrService('2.7', 'PUT /limits/p1', { body: () => ({ generation: 99 }), status: 409 }),
  adminOrService('2.7', 'PUT /default_limits', { body: () => ({ generation: 99 }), status: 409 }),
  adminOrService('2.7', 'DELETE /limits/unknown', { status: 404 }),
  adminOrService('2.7', 'DELETE /default_limits', { status: 404 }),
  alsoReaders('2.8', 'GET /waiting', { query: 'project_id=p1', project: 'p1' }),
  adminOrService('2.8', 'DELETE /waiting/{unknown}', { status: 404 }),
  alsoReaders('2.9', 'GET /holdings', { query: 'project_id=p1', project: 'p1' }),
  alsoReaders('2.9', 'GET /usage_records', { query: 'project_id=p1', project: 'p1' }),
  alsoReaders('2.9', 'GET /usage_totals', { query: 'by=day&project_id=p1', project: 'p1' }),
  alsoReaders('2.9', 'GET /holdings', { query: 'project_id=p1&resource_provider={host}' }),
  adminOrService('', 'GET /metrics'),

  // nova/policies: services.py, hypervisors.py, aggregates.py
  novaAdmin('2.53', 'GET /compute/v2.1/os-services'),
  novaAdmin('2.53', 'POST /compute/v2.1/os-services', {
    body: ({ freeName }) => ({ host: freeName, binary: 'nova-compute' }),
  }),
  novaAdmin('2.1', 'PUT /compute/v2.1/os-services/disable', {
    body: ({ serviceHost }) => ({ host: serviceHost, binary: 'nova-compute' }),
  }),
  novaAdmin('2.53', 'PUT /compute/v2.1/os-services/{service}', { body: () => ({ status: 'disabled' }) }),
  novaAdmin('2.53', 'DELETE /compute/v2.1/os-services/{service}'),
  novaAdmin('2.1', 'DELETE /compute/v2.1/os-services/{serviceId}'),
  novaAdmin('2.53', 'GET /compute/v2.1/os-hypervisors'),
  novaAdmin('2.53', 'GET /compute/v2.1/os-hypervisors/detail'),
  novaAdmin('2.53', 'GET /compute/v2.1/os-hypervisors/statistics'),
  novaAdmin('2.53', 'GET /compute/v2.1/os-hypervisors/{hypervisor}'),
  novaAdmin('2.53', 'GET /compute/v2.1/os-hypervisors/{hypervisor}/uptime'),
  novaAdmin('2.1', 'GET /compute/v2.1/os-hypervisors/{serviceHost}/search'),
  novaAdmin('2.1', 'GET /compute/v2.1/os-hypervisors/{serviceHost}/servers'),
  novaAdmin('2.53', 'GET /compute/v2.1/os-aggregates'),
];
