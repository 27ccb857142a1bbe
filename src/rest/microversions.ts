import { newestOf, type Service, sinceOf, type VersionChanges } from './versions.ts';

/** What each minor version of `placement 1.N` brought, from 1.0 on. A new version is a new line at the end. */
export const changes = {
  firstVersion: [0, 'Resource providers, inventories, usages, allocations.'],
  aggregates: [1, 'Aggregates of a resource provider.'],
  resourceClasses: [2, 'Resource classes, custom ones among them.'],
  providersByAggregate: [3, 'GET /resource_providers: member_of.'],
  providersByResources: [4, 'GET /resource_providers: resources.'],
  inventoriesDeletion: [5, 'DELETE /resource_providers/{uuid}/inventories.'],
  traits: [6, 'Traits, and traits of a resource provider.'],
  ensuredClasses: [7, 'PUT /resource_classes/{name} creates or validates, without a body.'],
  requiredOwners: [8, 'PUT /allocations/{consumer_uuid} requires project_id and user_id.'],
  projectUsages: [9, 'GET /usages, by project and user.'],
  allocationCandidates: [10, 'GET /allocation_candidates.'],
  allocationLinks: [11, 'Links to the allocations of a resource provider.'],
  allocationsByProvider: [12, 'Allocations are written in the form in which they are read, by resource provider.'],
  severalConsumers: [13, 'POST /allocations, for several consumers at once.'],
  nestedProviders: [14, 'Nested resource providers: parent and root, in_tree.'],
  cacheHeaders: [15, 'Last-Modified and Cache-Control headers.'],
  candidateLimit: [16, 'GET /allocation_candidates: limit.'],
  candidateTraits: [17, 'GET /allocation_candidates: required; traits in provider summaries.'],
  providersByTraits: [18, 'GET /resource_providers: required.'],
  guardedAggregates: [19, 'The generation of the resource provider guards its aggregates.'],
  createdProviderShown: [20, 'POST /resource_providers answers with the resource provider.'],
  candidateAggregates: [21, 'GET /allocation_candidates: member_of.'],
  forbiddenTraits: [22, 'Forbidden traits in required.'],
  errorCodes: [23, 'Error codes.'],
  severalMemberOf: [24, 'Several member_of parameters.'],
  numberedGroups: [25, 'Granular resource requests in numbered groups.'],
  fullyReserved: [26, 'Inventories whose reserved value equals their total.'],
  allResources: [27, 'Provider summaries show all resource classes.'],
  consumerGenerations: [28, 'Consumer generations.'],
  nestedCandidates: [29, 'Nested resource providers in GET /allocation_candidates.'],
  reshaper: [30, 'POST /reshaper.'],
  candidateTree: [31, 'GET /allocation_candidates: in_tree.'],
  forbiddenAggregates: [32, 'Forbidden aggregates in member_of.'],
  namedGroups: [33, 'Granular groups may have names.'],
  mappings: [34, 'Mappings of groups to resource providers.'],
  rootRequired: [35, 'GET /allocation_candidates: root_required.'],
  sameSubtree: [36, 'GET /allocation_candidates: same_subtree, and groups without resources.'],
  reparenting: [37, 'Resource providers may be re-parented and un-parented.'],
  consumerTypes: [38, 'Consumer types.'],
  anyTraits: [39, 'Any of several traits in required, by in:.'],
  // OpenStack's versions end here; the following ones are this service's.
  entityTags: [40, 'Entity tags: ETag and etag in answers, If-Match in requests.'],
  consumers: [41, 'Consumers as a resource; GET /provider_summaries; codes of refused claims.'],
  explanation: [42, 'GET /allocation_candidates/explanation and /allocation_candidates/count.'],
  placing: [43, 'Claims by query; order, with and apart_from; dry runs.'],
  following: [44, 'GET /changes, and the header Placement-Changes-Token.'],
  terms: [45, 'Claims that end by themselves: expires_in, expires_at, PUT /consumers/{uuid}/term.'],
} as const satisfies VersionChanges;

/** The minor version that brought each change: `request.version >= since.mappings`. */
export const since = sinceOf(changes);

/** The Placement API with all its versions. */
export const placementService: Service = {
  type: 'placement',
  major: 1,
  minMinor: since.firstVersion,
  maxMinor: newestOf(since),
};
