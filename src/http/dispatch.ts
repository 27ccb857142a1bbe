import type { Hono } from 'hono';
import type { Logger } from 'pino';
import type { Policy } from '../access/policy/policy.ts';
import { type IfMatch, parseIfMatch } from '../placement/entity_tag.ts';
import { ApiError, badRequest, notFound, notFoundWithoutVary } from '../request/errors.ts';
import { openTurns, type Turns } from '../request/turns.ts';
import type { ApiRequest, BoundEndpoint, PolicyTarget, Route } from '../rest/endpoint.ts';
import type { Identity } from '../rest/identity.ts';
import { parseQuery, type Query } from '../rest/query_string.ts';
import { versionText } from '../rest/versions.ts';
import { accepts, bestOffer } from './accept.ts';
import { eventStream, releaseWhenSent, renderAnswer, renderEvents, respond } from './answer.ts';
import { type JsonBody, openJsonBody } from './body.ts';
import type { Dialect, ServedApi } from './dialect.ts';
import { type Exchange, goneSignal, type HonoEnv, hasLeft } from './exchange.ts';
import { networkOf } from './own_hosts.ts';
import { TokenRefused } from './unauthorized.ts';

/**
 * Mounts the endpoints of an API under their paths; every other method there is answered 405.
 *
 * @param options.limitBytes how long the body of a request may be
 */
export function mountEndpoints(
  app: Hono<HonoEnv>,
  { endpoints }: ServedApi,
  options: { readonly policy: Policy; readonly logger: Logger; readonly limitBytes: number },
): void {
  const { policy, logger, limitBytes } = options;
  const byPath = Map.groupBy(endpoints, (endpoint) => endpoint.path);
  for (const [path, ofPath] of byPath) {
    const byMethod = Map.groupBy(ofPath, (endpoint): string => endpoint.method);
    const answeringHead = byMethod.get('GET')?.filter(({ answersHead }) => answersHead);
    const allow = [...byMethod.keys()].join(', ');
    app.all(path, async (c) => {
      const exchange = c.get('exchange');
      const { method } = c.req.raw;
      // Hono would answer every HEAD by the handler of GET.
      const candidates = byMethod.get(method) ?? (method === 'HEAD' ? answeringHead : undefined);
      if (candidates === undefined || candidates.length === 0) {
        throw new ApiError(405, 'The method specified is not allowed for this resource.', { headers: { allow } });
      }
      const endpoint = select(candidates, exchange);
      const ifMatch = readIfMatch(c.req.raw.headers, endpoint, exchange);
      const { dialect } = exchange.api;
      const request: ApiRequest = apiRequest(c.req.raw, exchange, {
        ifMatch,
        param: (name) => c.req.param(name) ?? '',
        limitBytes,
        gone: () => goneSignal(c.env ?? {}),
        requireRule: (rule) => authorize(policy, rule, exchange.identity, dialect),
        requireStill: async (rule) => {
          const refused = await exchange.authenticateAgain?.();
          if (refused !== undefined) throw new TokenRefused(refused);
          authorize(policy, rule, exchange.identity, dialect);
        },
      });
      exchange.quiet = endpoint.quiet ?? false;
      const { policy: rule, policyTarget } = endpoint;
      if (rule !== undefined) authorize(policy, rule, exchange.identity, dialect, policyTarget?.(request));
      const answer = await endpoint.handle(request);
      releaseWhenSent(answer, c.env?.outgoing);
      const cutOff = () => c.env?.outgoing?.destroy();
      if (answer.events !== undefined) return respond(exchange, renderEvents(answer.events(cutOff), answer.headers));
      const rendered = renderAnswer(answer, exchange.version, exchange.origin + exchange.prefix, (error) => {
        const { requestId, globalRequestId } = exchange;
        // The making of an answer also ends with an error where its client leaves.
        if (!hasLeft(c.env ?? {})) logger.error({ err: error, requestId, globalRequestId }, 'An answer was cut off');
        cutOff();
      });
      return respond(exchange, rendered);
    });
  }
  app.notFound(() => {
    throw notFoundWithoutVary('');
  });
}

function select(candidates: readonly BoundEndpoint[], exchange: Exchange): BoundEndpoint {
  const [first] = candidates;
  if (first?.mediaTypesFirst) checkMediaTypes(first, exchange);
  const endpoint = candidates.find(
    ({ since, until = Number.POSITIVE_INFINITY }) => since <= exchange.version && exchange.version <= until,
  );
  if (endpoint === undefined) {
    const { service, dialect } = exchange.api;
    const later = candidates.find(({ since }) => since > exchange.version);
    const text = later === undefined ? '' : dialect.tooEarly(later, service, exchange.version);
    throw first?.absentStatus === 405 ? new ApiError(405, text) : notFound(text);
  }
  if (!endpoint.mediaTypesFirst) checkMediaTypes(endpoint, exchange);
  return endpoint;
}

function checkMediaTypes(endpoint: Route, exchange: Exchange): void {
  if (endpoint.answersJson && !accepts(exchange.accept, 'application/json')) {
    if (!endpoint.answersEvents) throw new ApiError(406, 'Only application/json is provided');
    if (!accepts(exchange.accept, eventStream)) {
      throw new ApiError(406, `Only application/json and ${eventStream} are provided`);
    }
  }
  if (endpoint.wantsJson && exchange.contentType.split(';')[0]?.trim() !== 'application/json') {
    throw new ApiError(415, `The media type ${exchange.contentType || 'None'} is not supported, use application/json`);
  }
}

function apiRequest(
  raw: Request,
  exchange: Exchange,
  {
    limitBytes,
    ...more
  }: Pick<ApiRequest, 'ifMatch' | 'param' | 'requireRule' | 'requireStill' | 'gone'> & { readonly limitBytes: number },
): ApiRequest {
  let query: Query | undefined;
  let body: JsonBody | undefined;
  let turns: Turns | undefined;
  const turnsOf = (): Turns => {
    turns ??= openTurns(more.gone);
    return turns;
  };
  const bodyOf = (): JsonBody => {
    body ??= openJsonBody(raw, { limitBytes, dialect: exchange.api.dialect, turns: turnsOf });
    return body;
  };
  return {
    version: exchange.version,
    identity: exchange.identity,
    ...more,
    turns: turnsOf,
    // Not a getter: V8 would make a hidden class for each request, and keep all that it refers to until the whole heap
    // is collected. Without a getter, the garbage collection takes a tenth of the time.
    query: () => {
      query ??= parseQuery(exchange.search);
      return query;
    },
    json: (schema) => bodyOf().read(schema),
    bodyText: () => bodyOf().text(),
    check: (value, schema) => bodyOf().check(value, schema),
    prefers: (offers) => bestOffer(exchange.accept, offers),
    header: (name) => raw.headers.get(name) ?? undefined,
    network: () => networkOf(exchange.sender),
    origin: exchange.origin,
    prefix: exchange.prefix,
  };
}

/**
 * The condition of If-Match, where the request has one and its endpoint takes it.
 *
 * @throws ApiError 406 at an older version: a success would make the client believe that the condition was checked; 400
 *   where the header is malformed.
 */
function readIfMatch(
  headers: Headers,
  { ifMatchSince: since }: Route,
  { version, api }: Exchange,
): IfMatch | undefined {
  const header = headers.get('if-match');
  if (header === null || since === undefined) return undefined;
  if (version >= since) return parseIfMatch(header) ?? refuse(header);
  const { service } = api;
  throw new ApiError(
    406,
    `If-Match needs microversion ${versionText(service, since)}, and the request is made at ` +
      `${versionText(service, version)}. ` +
      (service.maxMinor < since
        ? 'This service does not offer that version ([api] max_microversion): leave If-Match out.'
        : 'Ask for that version, or leave If-Match out.'),
  );
}

function refuse(header: string): never {
  const found = header === '' ? 'empty' : `'${header.slice(0, 200)}'`;
  throw badRequest(
    `If-Match is neither * nor a list of entity tags such as W/"0123", but ${found}. Send the tag as it was in ETag, ` +
      'or leave If-Match out.',
  );
}

/**
 * Refuses a request that a rule of the policy does not allow.
 *
 * @param target what the rule compares with the identity; by default its own project and user
 * @throws ApiError 403
 */
export function authorize(
  policy: Policy,
  rule: string,
  identity: Identity,
  { forbidden }: Pick<Dialect, 'forbidden'>,
  target: PolicyTarget = { project_id: identity.projectId ?? null, user_id: identity.userId },
): void {
  if (policy.allows(rule, identity, target)) return;
  throw new ApiError(403, forbidden(rule), { vary: false });
}
