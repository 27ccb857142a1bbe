import { isStorable } from '../../db/engine/storable.ts';
import { conditionsOf } from '../candidates/conditions.ts';
import { parseCandidateRequest, queryParameters } from '../candidates/query.ts';
import type { Claim, ConsumerClaim, PlacementQuery } from '../claims/claim.ts';
import { placingOrder } from '../claims/placing_order.ts';
import type { ApiRequest } from '../rest/endpoint.ts';
import { ApiError, badRequest } from '../rest/errors.ts';
import { parseQuery } from '../rest/query_string.ts';
import { pythonRepr } from '../rest/schema_complaint.ts';
import type { ConsumerBody } from './allocation_bodies.ts';

/*
 * Claims by query: `candidates` in the place of `allocations`, from microversion 1.43 on.
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
export function queriesOf(uuid: string, body: ConsumerBody, version: number): Pick<ConsumerClaim, 'queries'> {
  const { candidates } = body;
  if (candidates === undefined) {
    if (body.allocations === undefined) throw refused(uuid, "one of 'allocations' and 'candidates' is required.");
    return {};
  }
  for (const key of ['allocations', 'mappings'] as const) {
    if (body[key] === undefined) continue;
    throw refused(uuid, `'candidates' cannot stand together with '${key}'. Got: ${pythonRepr(body[key])}`);
  }
  const texts: readonly unknown[] = Array.isArray(candidates) ? candidates : [candidates];
  if (texts.length === 0 || texts.length > mostQueries) {
    throw refused(uuid, `'candidates' has ${texts.length} queries, and may have 1 to ${mostQueries}.`);
  }
  return { queries: texts.map((text) => readQuery(uuid, text, version)) };
}

/** So many queries are kept, and so long ones: the same flavors are asked for again and again. */
const keptQueries = 1000;
const longestKept = 1000;
const kept = new Map<string, PlacementQuery>();

/** Reads a query, or finds it among those that were read before; one that names consumers does not come again. */
function readQuery(uuid: string, text: unknown, version: number): PlacementQuery {
  const key = `${version} ${text}`;
  const known = typeof text === 'string' ? kept.get(key) : undefined;
  if (known !== undefined) return known;
  const query = parseText(uuid, text, version);
  const { request } = query;
  if (key.length <= longestKept && request.with.length + request.apartFrom.length === 0) {
    if (kept.size >= keptQueries) kept.clear();
    kept.set(key, query);
  }
  return query;
}

function parseText(uuid: string, text: unknown, version: number): PlacementQuery {
  if (typeof text !== 'string') {
    throw refused(uuid, `'candidates' is not a query string or a list of query strings. Got: ${pythonRepr(text)}`);
  }
  const bytes = Buffer.byteLength(text);
  if (bytes > longestQuery) {
    throw refused(uuid, `'candidates' has ${bytes} bytes, and may have ${longestQuery}. Got: ${pythonRepr(text)}`);
  }
  if (!isStorable(text))
    throw refused(uuid, `'candidates' contains a NUL or a lone surrogate. Got: ${pythonRepr(text)}`);
  try {
    const query = parseQuery(`?${text}`); // so that a '?' of its own is part of the first name, as in a URL
    const limit = query.last('limit');
    if (limit !== undefined) throw badRequest(`'limit' was unexpected, since one candidate is taken. Got: ${limit}`);
    const request = parseCandidateRequest(query, version, parameters);
    return { request, conditions: conditionsOf(query, request) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw badRequest(
      `candidates of consumer ${uuid}: ${error.sentence ?? error.message} (in ${pythonRepr(text)})`,
      error.code,
    );
  }
}

const refused = (uuid: string, problem: string): ApiError => badRequest(`Consumer ${uuid}: ${problem}`);

/**
 * The claim of some consumers.
 *
 * @throws ApiError 403 where queries are not allowed to this client, and 400 for too many of them
 */
export function claimOf(consumers: readonly ConsumerClaim[], request: ApiRequest): Claim {
  const count = consumers.filter(({ queries }) => queries !== undefined).length;
  if (count === 0) return { consumers, inventories: [] };
  request.requireRule('placement:allocation_candidates:list');
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
  return { consumers, inventories: [], placing: order.placing };
}
