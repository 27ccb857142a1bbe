/**
 * A service with microversions, such as `placement 1.0` to `placement 1.40`. One server may speak for several: they share
 * the header, comma-separated.
 */
export type Service = {
  /** The service type of the header, as in the Keystone catalog. */
  readonly type: string;
  readonly major: number;
  readonly minMinor: number;
  readonly maxMinor: number;
};

/** A version as headers have it, `1.39`. */
export const versionText = (service: Service, minor: number): string => `${service.major}.${minor}`;

/** What each minor version of `placement 1.N` brought, from 1.0 on. */
const changes: readonly string[] = [
  'Resource providers, inventories, usages, allocations.',
  'Aggregates of a resource provider.',
  'Resource classes, custom ones among them.',
  'GET /resource_providers: member_of.',
  'GET /resource_providers: resources.',
  'DELETE /resource_providers/{uuid}/inventories.',
  'Traits, and traits of a resource provider.',
  'PUT /resource_classes/{name} creates or validates, without a body.',
  'PUT /allocations/{consumer_uuid} requires project_id and user_id.',
  'GET /usages, by project and user.',
  'GET /allocation_candidates.',
  'Links to the allocations of a resource provider.',
  'Allocations are written in the form in which they are read, by resource provider.',
  'POST /allocations, for several consumers at once.',
  'Nested resource providers: parent and root, in_tree.',
  'Last-Modified and Cache-Control headers.',
  'GET /allocation_candidates: limit.',
  'GET /allocation_candidates: required; traits in provider summaries.',
  'GET /resource_providers: required.',
  'The generation of the resource provider guards its aggregates.',
  'POST /resource_providers answers with the resource provider.',
  'GET /allocation_candidates: member_of.',
  'Forbidden traits in required.',
  'Error codes.',
  'Several member_of parameters.',
  'Granular resource requests in numbered groups.',
  'Inventories whose reserved value equals their total.',
  'Provider summaries show all resource classes.',
  'Consumer generations.',
  'Nested resource providers in GET /allocation_candidates.',
  'POST /reshaper.',
  'GET /allocation_candidates: in_tree.',
  'Forbidden aggregates in member_of.',
  'Granular groups may have names.',
  'Mappings of groups to resource providers.',
  'GET /allocation_candidates: root_required.',
  'GET /allocation_candidates: same_subtree, and groups without resources.',
  'Resource providers may be re-parented and un-parented.',
  'Consumer types.',
  'Any of several traits in required, by in:.',
  // Upstream ends here; what follows is ours.
  'Entity tags: ETag and etag in answers, If-Match in requests.',
];

/** The Placement API with all its versions. */
export const placementService: Service = {
  type: 'placement',
  major: 1,
  minMinor: 0,
  maxMinor: changes.length - 1,
};

/** The same service with nothing above a version, such as `1.30`, offered or understood. */
export const upTo = (service: Service, version: string): Service => ({
  ...service,
  maxMinor: Math.min(service.maxMinor, Number(version.slice(version.indexOf('.') + 1))),
});
