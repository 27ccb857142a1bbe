import {
  type Claim,
  type ClaimOutcome,
  ClaimRefused,
  type ClaimRights,
  type ConsumerClaim,
  type InventoryFault,
  type PlacementQuery,
  type RefusalReason,
  type UncountedRights,
} from '../../claims/claim.ts';
import { placingOrder } from '../../claims/placing.ts';
import type { Wait } from '../../claims/waiter.ts';
import type { Config } from '../../config/config.ts';
import type { Owner } from '../../placement/consumer.ts';
import { unknownType } from '../../placement/entity_tag.ts';
import { since } from '../../placement/microversions.ts';
import { withName } from '../../placement/uuid.ts';
import { ApiError, badRequest, conflict, type ErrorCode, errorCodes } from '../../request/errors.ts';
import type { AllowsOwner, Answer, ApiRequest } from '../../rest/endpoint.ts';
import { parseQuery } from '../../rest/query_string.ts';
import { pythonRepr } from '../../rest/schema_complaint.ts';
import { Cache } from '../../text/cache.ts';
import { isStorable } from '../../text/strings.ts';
import { preconditionFailed } from '../answers.ts';
import { conditionsOf } from '../candidates/conditions.ts';
import { parseCandidateRequest, queryParameters } from '../candidates/query.ts';
import { goesOn, incompleteOwner, termOf } from '../consumers/consumer.ts';
import type { Dependencies } from '../dependencies.ts';
import type { ConsumerBody } from './bodies.ts';

/** The claim for one consumer of a body, at any version. */
export function consumerClaim(
  uuid: string,
  body: ConsumerBody,
  { version, ifMatch }: Pick<ApiRequest, 'version' | 'ifMatch'>,
  config: Config,
): ConsumerClaim {
  const incomplete = incompleteOwner(config);
  const { allocations = {} } = body;
  const shown = withName(uuid, body.name);
  const listed = Array.isArray(allocations)
    ? allocations.map((allocation) => [allocation.resource_provider.uuid, allocation.resources] as const)
    : Object.entries(allocations).map(([provider, { resources }]) => [provider, resources] as const);
  return {
    ...(version >= since.placing ? queriesOf(shown, body, version) : {}),
    ...termOf(shown, body, config),
    uuid,
    knownGeneration: version >= since.consumerGenerations ? (body.consumer_generation ?? null) : undefined,
    generationGoesOn: goesOn(version),
    // Before 1.8 the body has no project and user: the configured ones are written, even over others that the consumer
    // has.
    projectId: body.project_id ?? incomplete.projectId,
    userId: body.project_id === undefined ? incomplete.userId : (body.user_id ?? incomplete.userId),
    consumerType: body.consumer_type === unknownType ? undefined : body.consumer_type,
    name: body.name,
    expected: ifMatch && { ifMatch, incompleteOwner: incomplete },
    allocations: new Map(listed.map(([provider, resources]) => [provider, new Map(Object.entries(resources))])),
  };
}

/**
 * If-Match applies only to the consumers that the client knows. A consumer that is new (its generation is null) has no
 * tag, and the claim is refused anyway where it has allocations.
 */
export const expectKnownOnly = (claims: readonly ConsumerClaim[]): readonly ConsumerClaim[] =>
  claims.map((claim) => (claim.knownGeneration === null ? { ...claim, expected: undefined } : claim));

/** The beginning of a sentence about the allocations of a consumer, for errors of If-Match. */
export const allocationsPhrase = (uuid: string): string => `What consumer ${uuid} has`;
const inventoriesPhrase = (uuid: string): string => `What resource provider ${uuid} has`;

/** The words of a refusal that differ between kinds of requests, and the version, which has some codes or not. */
type ClaimWording = {
  readonly version: number;
  readonly notFound: string;
  readonly concurrentUpdate?: string;
  /** Makes the error for a request that a rule of the policy does not allow. */
  readonly forbidden: (rule: string) => ApiError;
};

/** How the claim of a request is written, or only judged. */
type Writing = ClaimWording & {
  readonly isDryRun: boolean;
  /** How it waits where it cannot be written at once; undefined if it does not. */
  readonly wait?: Wait | undefined;
};

/** Writes the claim of a request. @throws ApiError 400, 409 or 412 that says why it was refused. */
export async function writeClaim(
  { claims, waiting }: Dependencies,
  claim: Claim,
  { isDryRun, wait, ...writing }: Writing,
): Promise<ClaimOutcome> {
  try {
    if (isDryRun) return await claims.tryOut(claim);
    return await (wait === undefined ? claims.write(claim) : waiting.write(claim, wait));
  } catch (error) {
    if (!(error instanceof ClaimRefused)) throw error;
    throw refusals[error.reason](error, writing);
  }
}

/**
 * Whether a body asks for a dry run.
 *
 * @throws ApiError 400 if `dry_run` is a parameter of the URL. Other unknown parameters are ignored, but a claim with
 *   this one would be written although the client wanted only to try it
 */
export function asksForDryRun(request: ApiRequest, body: object): boolean {
  refuseDryRunOfUrl(request, 'dry_run is a field of the body, not a parameter of the URL. Nothing was written.');
  return 'dry_run' in body && body.dry_run === true;
}

/** @throws ApiError 400 if `dry_run` is a parameter of the URL */
export function refuseDryRunOfUrl(request: ApiRequest, why: string): void {
  if (request.version >= since.placing && request.query().all('dry_run').length > 0) throw badRequest(why);
}

/** Answers a request whose body was read. The answer to a dry run has a header that says so, and so has a refusal. */
export const answerTo = (isDryRun: boolean, answer: () => Promise<Answer>): Promise<Answer> =>
  isDryRun ? withHeaders({ 'placement-dry-run': 'true' }, answer) : answer();

/** Answers a request whose claim may wait: RFC 7240's header says so, also in a refusal. */
export const answerAfter = (wait: Wait | undefined, answer: () => Promise<Answer>): Promise<Answer> =>
  wait === undefined ? answer() : withHeaders({ 'preference-applied': `wait=${wait.waitMs / 1000}` }, answer);

async function withHeaders(more: Readonly<Record<string, string>>, answer: () => Promise<Answer>): Promise<Answer> {
  try {
    const { headers, ...answered } = await answer();
    return { ...answered, headers: { ...headers, ...more } };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { status, message, sentence, code, vary } = error;
    const headers = { ...error.headers, ...more };
    throw new ApiError(status, message, { code, vary, headers, ...(sentence === undefined ? {} : { sentence }) });
  }
}

const refusals: Readonly<Record<RefusalReason, (refused: ClaimRefused, wording: ClaimWording) => ApiError>> = {
  'not allowed': ({ message: rule }, { forbidden }) => forbidden(rule),
  'unmatched consumer': ({ message: uuid }) => preconditionFailed(allocationsPhrase(uuid)),
  'unmatched inventories': ({ message: uuid }) => preconditionFailed(inventoriesPhrase(uuid)),
  'consumer generation': ({ message, consumer }) =>
    new ApiError(409, message, {
      code: errorCodes.concurrentUpdate,
      ...(consumer === undefined ? {} : { sentence: `${message}; it is that of consumer ${consumer}` }),
    }),
  'provider generation': ({ message }) => conflict(message, errorCodes.concurrentUpdate),
  'unknown provider': ({ message }) => badRequest(message),
  'unknown inventory provider': ({ message }) => badRequest(message, errorCodes.providerNotFound),
  'unknown class': ({ message }, { notFound }) => badRequest(`${notFound} ${message}`),
  limit: ({ message }, { version }) => limitRefused(message, version),
  'invalid inventory': ({ message, fault }, { version }) =>
    conflict(
      `Unable to allocate inventory: ${message}`,
      fault === undefined || version < since.consumers ? errorCodes.undefined : faultCodes[fault],
    ),
  'inventory in use': ({ message }) => conflict(`update conflict: ${message}`, errorCodes.inventoryInUse),
  'no candidates': ({ message }) => conflict(message, errorCodes.noCandidates),
  'given up': ({ message }) => badRequest(message),
  'not its turn': ({ message }) => conflict(message, errorCodes.noCandidates),
  'query too wide': ({ message }) => badRequest(message, errorCodes.queryTooWide),
  query: ({ message }) => badRequest(message),
  'concurrent update': ({ message }, { concurrentUpdate }) =>
    conflict(
      `${concurrentUpdate ?? 'Inventory and/or allocations changed while attempting to allocate:'} ${message}`,
      errorCodes.concurrentUpdate,
    ),
};

/** The error for a write that exceeds a limit. Versions before limits have no code for it. */
export const limitRefused = (message: string, version: number): ApiError =>
  new ApiError(403, message, { code: version < since.teams ? errorCodes.undefined : errorCodes.limitExceeded });

/** From 2.2 on; upstream's versions have no code for these. */
const faultCodes: Readonly<Record<InventoryFault, ErrorCode>> = {
  absent: errorCodes.inventoryAbsent,
  constraints: errorCodes.inventoryConstraints,
  capacity: errorCodes.capacityExceeded,
};

/*
 * Claims by query: `candidates` in the place of `allocations`, from microversion 2.4 on.
 */

const parameters = queryParameters(['limit']);

/** How many queries a consumer may have, of which the first that fits counts. */
const mostQueries = 8;

/** How long one of them may be, in bytes of UTF-8. */
const longestQuery = 16_384;

/** How many consumers of one POST may be by query. */
const mostPlaced = 500;

/**
 * The queries of a consumer in a body; none where it has allocations.
 *
 * @throws ApiError 400 that names the consumer, the parameter and the value
 */
function queriesOf(consumer: string, body: ConsumerBody, version: number): Pick<ConsumerClaim, 'queries'> {
  const { candidates } = body;
  if (candidates === undefined) {
    if (body.allocations === undefined) throw refused(consumer, "one of 'allocations' and 'candidates' is required.");
    return {};
  }
  for (const key of ['allocations', 'mappings'] as const) {
    if (body[key] === undefined) continue;
    throw refused(consumer, `'candidates' cannot stand together with '${key}'. Got: ${pythonRepr(body[key])}`);
  }
  const texts: readonly unknown[] = Array.isArray(candidates) ? candidates : [candidates];
  if (texts.length === 0 || texts.length > mostQueries) {
    throw refused(consumer, `'candidates' has ${texts.length} queries, and may have 1 to ${mostQueries}.`);
  }
  return { queries: texts.map((text) => readQuery(consumer, text, version)) };
}

/** So many queries are kept, and so long ones: the same flavors are asked for again and again. */
const keptQueries = 1000;
const longestKept = 1000;
const kept = new Cache<string, PlacementQuery>(keptQueries);

/** Reads a query, or finds it in the cache. Queries that name consumers are not cached: they seldom repeat. */
function readQuery(consumer: string, text: unknown, version: number): PlacementQuery {
  const key = `${version} ${text}`;
  const known = typeof text === 'string' ? kept.get(key) : undefined;
  if (known !== undefined) return known;
  const query = parseText(consumer, text, version);
  const { request } = query;
  if (key.length <= longestKept && request.with.length + request.apartFrom.length === 0) kept.set(key, query);
  return query;
}

function parseText(consumer: string, text: unknown, version: number): PlacementQuery {
  if (typeof text !== 'string') {
    throw refused(consumer, `'candidates' is not a query string or a list of query strings. Got: ${pythonRepr(text)}`);
  }
  const bytes = Buffer.byteLength(text);
  if (bytes > longestQuery) {
    throw refused(consumer, `'candidates' has ${bytes} bytes, and may have ${longestQuery}. Got: ${pythonRepr(text)}`);
  }
  if (!isStorable(text))
    throw refused(consumer, `'candidates' contains a NUL or a lone surrogate. Got: ${pythonRepr(text)}`);
  try {
    const query = parseQuery(`?${text}`); // so that a '?' of its own is part of the first name, as in a URL
    const limit = query.last('limit');
    if (limit !== undefined) throw badRequest(`'limit' was unexpected, since one candidate is taken. Got: ${limit}`);
    const request = parseCandidateRequest(query, version, parameters);
    return { request, conditions: conditionsOf(query, request) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw badRequest(
      `candidates of consumer ${consumer}: ${error.sentence ?? error.message} (in ${pythonRepr(text)})`,
      error.code,
    );
  }
}

const refused = (consumer: string, problem: string): ApiError => badRequest(`Consumer ${consumer}: ${problem}`);

/** The rule of claims by query; while no policy file has it, that of other claims and of candidates. */
const placeRule = 'placement:allocations:place';
const candidatesRule = 'placement:allocation_candidates:list';

/** What the policy says of a request to write allocations before its body is read. */
export type ClaimRules = {
  /** The rule of claims that name their providers. */
  readonly rule: string;
  /** Undefined where that rule allows none, and only a claim by query may be allowed. `owners` are those that it allows: undefined for all. */
  readonly named: { readonly owners: AllowsOwner | undefined } | undefined;
  /** Whether a policy file has the rule of claims by query. */
  readonly isPlaceWritten: boolean;
  /** The configured owner of allocations without a record. */
  readonly incompleteOwner: Owner;
  /** The configured types that do not count for limits. */
  readonly uncountedTypes: readonly string[];
};

/** @throws ApiError 403 where the policy allows the request with no body */
export function claimRules(request: ApiRequest, rule: string, config: Config): ClaimRules {
  const isPlaceWritten = request.version >= since.placing && request.isRuleWritten(placeRule);
  const { uncountedTypes } = config.placement;
  const rules = { rule, isPlaceWritten, incompleteOwner: incompleteOwner(config), uncountedTypes };
  try {
    return { ...rules, named: { owners: request.allowedOwners(rule) } };
  } catch (error) {
    if (!isPlaceWritten) throw error;
    request.allowedOwners(placeRule);
    return { ...rules, named: undefined };
  }
}

/**
 * What the policy allows the client of a claim; undefined where that does not depend on the owners of consumers.
 *
 * @param placed how many of the consumers are by query
 * @throws ApiError 403 where a consumer is to have an owner whose consumers the client may not write
 */
function rightsOf(
  consumers: readonly ConsumerClaim[],
  placed: number,
  request: ApiRequest,
  { rule, named, isPlaceWritten, incompleteOwner }: ClaimRules,
): ClaimRights | undefined {
  const isAllPlaced = isPlaceWritten && placed === consumers.length;
  if (!isAllPlaced && named === undefined) {
    throw request.forbidden(rule, `A claim that names its providers needs it; one by 'candidates' needs ${placeRule}.`);
  }
  const ofQueries = placed === 0 ? undefined : isPlaceWritten ? placeRule : candidatesRule;
  const byName = isAllPlaced ? undefined : named?.owners;
  const byQuery = ofQueries === undefined ? undefined : request.allowedOwners(ofQueries);
  if (byName === undefined && byQuery === undefined) return undefined;
  const allows = (owner: Owner): boolean => byName?.(owner) !== false && byQuery?.(owner) !== false;
  const deciding = ofQueries ?? rule;
  const other = consumers.find((consumer) => !allows(consumer));
  if (other !== undefined) {
    const { uuid, name, projectId, userId } = other;
    throw request.forbidden(
      deciding,
      `Consumer ${withName(uuid, name)} is to be of project ${projectId} and user ${userId}.`,
    );
  }
  return { allows, rule: deciding, incompleteOwner };
}

const uncountedRule = 'placement:allocations:uncounted';

/**
 * Requires the rule for a consumer type that does not count for limits, where a consumer is to have one.
 *
 * @throws ApiError 403
 */
export function requireUncounted(
  { consumerType, ...owner }: Owner & { readonly consumerType?: string | null | undefined },
  request: Pick<ApiRequest, 'allowedOwners' | 'forbidden'>,
  uncountedTypes: readonly string[],
): void {
  if (consumerType === undefined || consumerType === null || !uncountedTypes.includes(consumerType)) return;
  if (request.allowedOwners(uncountedRule)?.(owner) === false) throw request.forbidden(uncountedRule);
}

/** Whose consumers may keep a type that does not count for limits; undefined where all may. */
function uncountedRights(
  request: Pick<ApiRequest, 'allowedOwners'>,
  types: readonly string[],
): UncountedRights | undefined {
  if (types.length === 0) return undefined;
  try {
    const allows = request.allowedOwners(uncountedRule);
    return allows && { types, allows, rule: uncountedRule };
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 403)) throw error;
    return { types, allows: () => false, rule: uncountedRule };
  }
}

/**
 * The claim of some consumers.
 *
 * @throws ApiError 403 where the client may not make this claim, and 400 for too many queries
 */
export function claimOf(consumers: readonly ConsumerClaim[], request: ApiRequest, rules: ClaimRules): Claim {
  const count = consumers.filter(({ queries }) => queries !== undefined).length;
  for (const consumer of consumers) requireUncounted(consumer, request, rules.uncountedTypes);
  const uncounted = uncountedRights(request, rules.uncountedTypes);
  const ofOwners = rightsOf(consumers, count, request, rules);
  const { rule, incompleteOwner } = rules;
  const rights =
    uncounted === undefined ? ofOwners : { ...(ofOwners ?? { allows: () => true, rule, incompleteOwner }), uncounted };
  if (count === 0) return { consumers, inventories: [], rights };
  if (count > mostPlaced) {
    throw badRequest(`The body has 'candidates' for ${count} consumers, and may have it for ${mostPlaced}.`);
  }
  const order = placingOrder(consumers);
  if ('circle' in order) {
    const [first = ''] = order.circle;
    throw badRequest(
      `Each of the consumers ${order.circle.join(', ')} names the next one in 'with' of its 'candidates', and the last one names ` +
        `${first}: none of them can be placed first.`,
    );
  }
  return { consumers, inventories: [], placing: order.placing, rights };
}
