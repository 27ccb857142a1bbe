/** A client for the OpenStack Placement API, `placement/client`: see docs/client.md. */
export type { AggregateCalls, Aggregates, NewAggregates } from './aggregates.ts';
export type { AllocationCalls, ConsumerAllocations, Reshape } from './allocations.ts';
export { type Auth, token } from './auth.ts';
export type {
  CandidateCount,
  CandidateQuestions,
  ExplainedCondition,
  Explanation,
  NamedProvider,
  UnmetCondition,
} from './candidate_questions.ts';
export type {
  AllocationRequest,
  CandidateQuery,
  Candidates,
  CandidatesCall,
  OrderKey,
  ProviderSummary,
} from './candidates.ts';
export type { Change, ChangesCall, FollowedChange, FollowOptions, ProviderPart } from './changes.ts';
export type { Claim, Mappings } from './claim.ts';
export { type ConflictOptions, retryConflicts } from './conflicts.ts';
export { type ConnectOptions, connect, type Placement } from './connect.ts';
export type {
  Consumer,
  ConsumerCalls,
  ConsumerChange,
  ConsumerOwner,
  ConsumerQuery,
  Term,
  TermChange,
} from './consumers.ts';
export {
  aggregateNamespace,
  aggregateUuid,
  consumerNamespace,
  consumerUuid,
  providerNamespace,
  providerUuid,
} from './derived_uuids.ts';
export {
  ApiError,
  AuthError,
  ConnectionError,
  type ErrorCode,
  isConcurrentUpdate,
  isConflict,
  isNoCandidates,
  isNotFound,
  isPreconditionFailed,
  PlacementError,
  VersionError,
  type VersionProblem,
  type VersionRange,
} from './errors.ts';
export type { ProviderFilter, Resources } from './filters.ts';
export type { Holding, HoldingCalls, HoldingQuery } from './holdings.ts';
export type { Guarded, Inventories, Inventory, InventoryCalls, NewInventories, NewInventory } from './inventories.ts';
export { type Credentials, type KeystoneOptions, keystone, type Scope } from './keystone.ts';
export type {
  DefaultLimits,
  LimitCalls,
  LimitDeletion,
  NewProjectLimits,
  ProjectLimits,
  ShownLimit,
} from './limits.ts';
export { type From, type Microversion, microversions, versionNumber } from './microversions.ts';
export type {
  Call,
  CallOptions,
  ClaimOptions,
  IfMatch,
  Operation,
  Parameter,
  PlacingOptions,
  Reply,
  WriteOptions,
} from './operation.ts';
export type { Page } from './pages.ts';
export type { NamesOfProviders, Placed, PlacedByQuery, PlacementQuery, Placing, UnlimitedQuery } from './placing.ts';
export type { ProviderSummaryCalls, SummaryQuery, WholeProvider } from './provider_summaries.ts';
export type {
  NewProvider,
  Provider,
  ProviderAllocations,
  ProviderCalls,
  ProviderChange,
  ProviderQuery,
} from './providers.ts';
export type { ResourceClass, ResourceClassCalls } from './resource_classes.ts';
export type { NewServiceToken, ServiceToken, TokenCalls, TokenFilter, TokenRequest } from './tokens.ts';
export type { ProviderTraitCalls, ProviderTraits, TraitCalls, TraitQuery } from './traits.ts';
export type {
  UsageRecord,
  UsageRecordCalls,
  UsageRecordQuery,
  UsageTotal,
  UsageTotalKey,
} from './usage_records.ts';
export {
  isByType,
  type ProjectUsages,
  type ProviderUsages,
  type UsageCalls,
  type UsageQuery,
  type UsagesByType,
} from './usages.ts';
export type { ServerVersion } from './version_request.ts';
export type { WaitingCalls, WaitingClaim, WaitingFilter } from './waiting.ts';
