import type { ConsumerClaim, PlacementQuery } from '../../claims/claim.ts';
import type { Wait } from '../../claims/waiter.ts';
import type { Config } from '../../config/config.ts';
import { unknownType } from '../../placement/entity_tag.ts';
import { since } from '../../placement/microversions.ts';
import { withName } from '../../placement/uuid.ts';
import { ApiError, badRequest } from '../../request/errors.ts';
import type { Answer, ApiRequest } from '../../rest/endpoint.ts';
import { parseQuery } from '../../rest/query_string.ts';
import { pythonRepr } from '../../rest/schema_complaint.ts';
import { Cache } from '../../text/cache.ts';
import { isStorable } from '../../text/strings.ts';
import { conditionsOf } from '../candidates/conditions.ts';
import { parseCandidateRequest, queryParameters } from '../candidates/query.ts';
import { goesOn, incompleteOwner, termOf } from '../consumers/consumer.ts';
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

/** How many queries are cached, and how long a cached query may be: the same flavors are asked for again and again. */
const keptQueries = 1000;
const longestKept = 1000;
const kept = new Cache<string, PlacementQuery>(keptQueries);

/** Reads a query, or finds it in the cache. Queries that name consumers are not cached: they seldom repeat. */
function readQuery(consumer: string, text: unknown, version: number): PlacementQuery {
  if (typeof text !== 'string') {
    throw refused(consumer, `'candidates' is not a query string or a list of query strings. Got: ${pythonRepr(text)}`);
  }
  const key = `${version} ${text}`;
  const known = kept.get(key);
  if (known !== undefined) return known;
  const query = parseText(consumer, text, version);
  const { request } = query;
  if (key.length <= longestKept && request.with.length + request.apartFrom.length === 0) kept.set(key, query);
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
