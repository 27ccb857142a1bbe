import {
  type Claim,
  type ClaimOutcome,
  ClaimRefused,
  type ConsumerClaim,
  type PlacementQuery,
} from '../../claims/claim.ts';
import { inOrderOfUuids, type Wait } from '../../claims/waiting/waiter.ts';
import type { Config } from '../../config/config.ts';
import { goesOn, incompleteOwner } from '../../placement/consumer.ts';
import { unknownType } from '../../placement/entity_tag.ts';
import { since } from '../../placement/microversions.ts';
import { withName } from '../../placement/uuid.ts';
import { ApiError, badRequest, withErrorHeaders } from '../../request/errors.ts';
import type { Answer, ApiRequest } from '../../rest/endpoint.ts';
import { parseQuery } from '../../rest/query_string.ts';
import { pythonRepr } from '../../rest/schema_complaint.ts';
import { Cache } from '../../text/cache.ts';
import { isStorable } from '../../text/strings.ts';
import { clientOf, preferredWait } from '../answers.ts';
import { conditionsOf } from '../candidates/conditions.ts';
import { parseCandidateRequest, queryParameters } from '../candidates/query.ts';
import { checkTerm } from '../consumers/consumer.ts';
import type { Dependencies } from '../dependencies.ts';
import type { ConsumerBody } from './bodies.ts';
import { type ClaimWording, type RefusedRequest, refusals } from './claim_refusals.ts';
import { claimOf, claimRules } from './claim_rights.ts';

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

/** The term that a claim sets for a consumer, if the claim names one. @throws ApiError 400 */
function termOf(consumer: string, body: ConsumerBody, config: Config): Pick<ConsumerClaim, 'term'> {
  const { expires_in: seconds, allocations } = body;
  if (seconds === undefined) return {};
  if (allocations !== undefined && Object.keys(allocations).length === 0) {
    throw badRequest(
      `Consumer ${consumer}: 'expires_in' cannot stand together with empty 'allocations', which remove the consumer. ` +
        `Got: ${seconds}`,
    );
  }
  checkTerm(consumer, seconds, config);
  return { term: { seconds } };
}

/**
 * If-Match applies only to the consumers that the client knows. A consumer that is new (its generation is null) has no
 * tag, and the claim is refused anyway where it has allocations.
 */
export const expectKnownOnly = (claims: readonly ConsumerClaim[]): readonly ConsumerClaim[] =>
  claims.map((claim) => (claim.knownGeneration === null ? { ...claim, expected: undefined } : claim));

/** Whether a body requests a dry run. */
export const asksForDryRun = (body: object): boolean => 'dry_run' in body && body.dry_run === true;

/** Answers a request whose body was read. Answers to dry runs, also refusals, have a header that marks them. */
export const answerTo = (isDryRun: boolean, answer: () => Promise<Answer>): Promise<Answer> =>
  isDryRun ? withHeaders({ 'placement-dry-run': 'true' }, answer) : answer();

/** Answers a request whose claim may wait. All answers, also refusals, have the header of RFC 7240. */
export const answerAfter = (wait: Wait | undefined, answer: () => Promise<Answer>): Promise<Answer> =>
  wait === undefined ? answer() : withHeaders({ 'preference-applied': `wait=${wait.waitMs / 1000}` }, answer);

async function withHeaders(more: Readonly<Record<string, string>>, answer: () => Promise<Answer>): Promise<Answer> {
  try {
    const { headers, ...answered } = await answer();
    return { ...answered, headers: { ...headers, ...more } };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw withErrorHeaders(error, more);
  }
}

/** How long the claim of a request may wait, in seconds (from 2.8); undefined without the preference. @throws ApiError 400 */
export const requestedWait = (request: ApiRequest, { placement }: Config): number | undefined =>
  request.version < since.waiting ? undefined : preferredWait(request, { least: 1, most: placement.maxWait });

/**
 * How the claim of a request waits where it cannot be written at once (from 2.8); undefined if it does not wait: without the preference, in
 * a dry run, with If-Match, and without a consumer by query.
 *
 * @param options.seconds as `requestedWait` returns them
 * @throws ApiError 400 for a line without a wait or of several projects
 */
export function waitFor(
  request: ApiRequest,
  consumers: readonly ConsumerClaim[],
  options: {
    readonly seconds: number | undefined;
    readonly rule: string;
    readonly line: string | undefined;
    readonly isDryRun: boolean;
  },
  { config }: Pick<Dependencies, 'config'>,
): Wait | undefined {
  const { seconds, line, isDryRun } = options;
  const [first] = inOrderOfUuids(consumers);
  const mayWait = !isDryRun && request.ifMatch === undefined && consumers.some(({ queries }) => queries !== undefined);
  if (seconds === undefined || !mayWait || first === undefined) {
    if (line === undefined) return undefined;
    const why =
      seconds === undefined
        ? 'the request has no header Prefer: wait'
        : isDryRun
          ? 'a dry run does not wait'
          : request.ifMatch === undefined
            ? "no consumer has 'candidates'"
            : 'a request with If-Match does not wait';
    throw badRequest(`'line' is for a claim that waits, and ${why}. Got: ${JSON.stringify(line)}`);
  }
  const { projectId, userId } = first;
  const other = consumers.find((consumer) => consumer.projectId !== projectId);
  if (line !== undefined && other !== undefined) {
    throw badRequest(
      `'line' is of one project, and the request has consumers of projects ${projectId} and ${other.projectId}. Got: ${JSON.stringify(line)}`,
    );
  }
  return {
    waitMs: seconds * 1000,
    line,
    owner: { projectId, userId },
    client: clientOf(request, config),
    gone: request.gone(),
    authorizeAgain: async () => {
      await request.requireToken();
      return claimOf(consumers, request, claimRules(request, options.rule), config);
    },
  };
}

/** How the claim of a request is written, or only judged. */
type Writing = ClaimWording & {
  readonly isDryRun: boolean;
  /** How the claim waits where it cannot be written at once; undefined if it does not wait. */
  readonly wait?: Wait | undefined;
};

/** Writes the claim of a request. @throws ApiError 400, 409 or 412 with the reason of a refusal */
export async function writeClaim(
  request: RefusedRequest,
  { claims, waiting }: Dependencies,
  claim: Claim,
  { isDryRun, wait, ...wording }: Writing,
): Promise<ClaimOutcome> {
  try {
    if (isDryRun) return await claims.dryRun(claim);
    return await (wait === undefined ? claims.write(claim) : waiting.write(claim, wait));
  } catch (error) {
    if (!(error instanceof ClaimRefused)) throw error;
    throw refusals[error.reason](error, request, wording);
  }
}

/*
 * Claims by query: `candidates` instead of `allocations`, from microversion 2.4 on.
 */

const parameters = queryParameters(['limit']);

/** How many queries a consumer may have. The first query that fits counts. */
const mostQueries = 8;

/** How long a query may be, in bytes of UTF-8. */
const longestQuery = 16_384;

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

/** How many queries are cached, and how long a cached query may be: schedulers send the same flavors again and again. */
const mostCached = 1000;
const longestCached = 1000;
const cache = new Cache<string, PlacementQuery>(mostCached);

/** Reads a query, or finds it in the cache. Queries that name consumers are not cached: they seldom repeat. */
function readQuery(consumer: string, text: unknown, version: number): PlacementQuery {
  if (typeof text !== 'string') {
    throw refused(consumer, `'candidates' is not a query string or a list of query strings. Got: ${pythonRepr(text)}`);
  }
  const key = `${version} ${text}`;
  const known = cache.get(key);
  if (known !== undefined) return known;
  const query = parseText(consumer, text, version);
  const { request } = query;
  if (key.length <= longestCached && request.with.length + request.apartFrom.length === 0) cache.set(key, query);
  return query;
}

function parseText(consumer: string, text: string, version: number): PlacementQuery {
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
