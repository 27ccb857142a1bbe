import { newestSince, type Service, sinceOf, type VersionChanges, versionOf } from './versions.ts';

/**
 * The changes of each version of `placement`, from 1.0 on. A new version of this service is a new line at the end. Version 2.0 is the same
 * as OpenStack's 1.39.
 */
export const changes = {
  firstVersion: ['1.0', 'Resource providers, inventories, usages, allocations.'],
  aggregates: ['1.1', 'Aggregates of a resource provider.'],
  resourceClasses: ['1.2', 'Resource classes, custom ones among them.'],
  providersByAggregate: ['1.3', 'GET /resource_providers: member_of.'],
  providersByResources: ['1.4', 'GET /resource_providers: resources.'],
  inventoriesDeletion: ['1.5', 'DELETE /resource_providers/{uuid}/inventories.'],
  traits: ['1.6', 'Traits, and traits of a resource provider.'],
  ensuredClasses: [
    '1.7',
    'PUT /resource_classes/{name} creates or validates, without a body.',
    'PUT no longer renames a class.',
  ],
  requiredOwners: [
    '1.8',
    'PUT /allocations/{consumer_uuid} requires project_id and user_id.',
    'A claim without them is refused.',
  ],
  projectUsages: ['1.9', 'GET /usages, by project and user.'],
  allocationCandidates: ['1.10', 'GET /allocation_candidates.'],
  allocationLinks: ['1.11', 'Links to the allocations of a resource provider.'],
  allocationsByProvider: [
    '1.12',
    'Allocations are written in the form in which they are read, by resource provider.',
    'The list of allocations is refused.',
  ],
  severalConsumers: ['1.13', 'POST /allocations, for several consumers at once.'],
  nestedProviders: ['1.14', 'Nested resource providers: parent and root, in_tree.'],
  cacheHeaders: ['1.15', 'Last-Modified and Cache-Control headers.'],
  candidateLimit: ['1.16', 'GET /allocation_candidates: limit.'],
  candidateTraits: ['1.17', 'GET /allocation_candidates: required; traits in provider summaries.'],
  providersByTraits: ['1.18', 'GET /resource_providers: required.'],
  guardedAggregates: [
    '1.19',
    'The generation of the resource provider guards its aggregates.',
    'The body is an object with the generation; a bare list is refused.',
  ],
  createdProviderShown: [
    '1.20',
    'POST /resource_providers answers with the resource provider.',
    'The answer is 200 with a body, not 201 without one.',
  ],
  candidateAggregates: ['1.21', 'GET /allocation_candidates: member_of.'],
  forbiddenTraits: ['1.22', 'Forbidden traits in required.'],
  errorCodes: ['1.23', 'Error codes.'],
  severalMemberOf: ['1.24', 'Several member_of parameters.'],
  numberedGroups: ['1.25', 'Granular resource requests in numbered groups.'],
  fullyReserved: ['1.26', 'Inventories whose reserved value equals their total.'],
  allResources: ['1.27', 'Provider summaries show all resource classes.'],
  consumerGenerations: [
    '1.28',
    'Consumer generations.',
    'A claim without consumer_generation is refused; DELETE stays unguarded.',
  ],
  nestedCandidates: [
    '1.29',
    'Nested resource providers in GET /allocation_candidates.',
    'A candidate may take resources from several providers of a tree.',
  ],
  reshaper: ['1.30', 'POST /reshaper.'],
  candidateTree: ['1.31', 'GET /allocation_candidates: in_tree.'],
  forbiddenAggregates: ['1.32', 'Forbidden aggregates in member_of.'],
  namedGroups: ['1.33', 'Granular groups may have names.'],
  mappings: ['1.34', 'Mappings of groups to resource providers.'],
  rootRequired: ['1.35', 'GET /allocation_candidates: root_required.'],
  sameSubtree: ['1.36', 'GET /allocation_candidates: same_subtree, and groups without resources.'],
  reparenting: ['1.37', 'Resource providers may be re-parented and un-parented.'],
  consumerTypes: ['1.38', 'Consumer types.', 'A claim without consumer_type is refused; GET /usages groups by type.'],
  anyTraits: ['1.39', 'Any of several traits in required, by in:.'],
  // OpenStack's versions end here. Version 2 belongs to this service: a 1.40 of OpenStack will be another version than any of these.
  entityTags: ['2.1', 'Entity tags: ETag and etag in answers, If-Match in requests.'],
  consumers: [
    '2.2',
    'Consumers as a resource; GET /provider_summaries; codes of refused claims.',
    'Refused claims have codes of their own, and errors about bodies and queries other sentences.',
  ],
  explanation: ['2.3', 'GET /allocation_candidates/explanation and /allocation_candidates/count.'],
  placing: ['2.4', 'Claims by query; order, with and apart_from; dry runs.'],
  following: ['2.5', 'GET /changes, and the header Placement-Changes-Token.'],
  terms: ['2.6', 'Claims that expire: expires_in, expires_at, PUT /consumers/{uuid}/term.'],
  teams: [
    '2.7',
    'Tokens of the service: /tokens; limits of projects: /limits, /default_limits. Answers to claims by query, and GET /allocations/{consumer}, name their resource providers; GET /changes: resource_class, in_tree; pools and parts in explanations.',
    'The detail of an error no longer begins with a sentence about its status; all errors are JSON of one form, whatever Accept says, also a 401.',
  ],
  waiting: ['2.8', 'Claims by query that wait for their turn: Prefer: wait, line; /waiting.'],
  names: [
    '2.9',
    'Names of consumers; GET /holdings; the history of usages: GET /usage_records, GET /usage_totals; GET /changes: consumers in parts.',
  ],
} as const satisfies VersionChanges;

/** The version that introduced each change: `request.version >= since.mappings`. */
export const since = sinceOf(changes);

/** The Placement API with all its versions: OpenStack's, and version 2, which is this service's own. */
export const placementService: Service = {
  type: 'placement',
  ranges: [
    { oldest: since.firstVersion, newest: newestSince(since, 1) },
    { oldest: versionOf(2, 0), newest: newestSince(since, 2) },
  ],
  defaultVersion: since.firstVersion,
};
