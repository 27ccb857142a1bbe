import type { Context, Hono } from 'hono';
import type { Policy } from '../access/policy/policy.ts';
import { type IfMatch, parseIfMatch } from '../placement/entity_tag.ts';
import { isOwn, newestOf, versionText } from '../placement/versions.ts';
import { ApiError, badRequest, notFound } from '../request/errors.ts';
import { noteShortRequest, openTurns, type Turns } from '../request/turns.ts';
import type { AllowsOwner, ApiRequest, BoundEndpoint, Endpoint, PolicyTarget, Route } from '../rest/endpoint.ts';
import type { Identity } from '../rest/identity.ts';
import { parseQuery, type Query } from '../rest/query_string.ts';
import { accepts, bestOffer } from './accept.ts';
import { eventStream, releaseWhenSent, renderAnswer, renderEvents, respond } from './answer.ts';
import { answeredError, type ErrorLog } from './answered_error.ts';
import { type Dialect, type ServedApi, shownPath } from './dialect.ts';
import { type Exchange, goneSignal, type HonoEnv, hasClientLeft } from './exchange.ts';
import { networkOf } from './own_hosts.ts';
import { hasBody, type JsonBody, openJsonBody } from './request_body.ts';
import { TokenRefused } from './unauthorized.ts';

/** Passes dependencies to the handlers of endpoints. */
export const bindEndpoints = <Dependencies>(
  endpoints: readonly Endpoint<Dependencies>[],
  dependencies: Dependencies,
): readonly BoundEndpoint[] =>
  endpoints.map(({ handle, ...route }) => ({ ...route, handle: (request) => handle(request, dependencies) }));

/** The policy, the largest size of a body, and where unexpected errors are noted. */
type MountOptions = ErrorLog & { readonly policy: Policy; readonly limitBytes: number };

/** Mounts the endpoints of an API under their paths; every other method there is answered 405. */
export function mountEndpoints(app: Hono<HonoEnv>, { endpoints }: ServedApi, options: MountOptions): void {
  const { policy, logger } = options;
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
        const sentence = `${method} is not allowed for ${shownPath(path)}. Allowed: ${allow}.`;
        throw new ApiError(405, 'The method specified is not allowed for this resource.', {
          headers: { allow },
          sentence,
        });
      }
      const endpoint = select(candidates, exchange);
      requireExactPath(exchange);
      const own: { turns?: Turns } = {};
      const request = apiRequest(c, endpoint, options, own);
      exchange.quiet = endpoint.quiet ?? false;
      const { policy: rule, policyTarget } = endpoint;
      if (rule !== undefined && !endpoint.ownerDecides) {
        authorize(policy, rule, exchange.identity, exchange.api.dialect, policyTarget?.(request));
      }
      requireNoParameters(endpoint, request, exchange);
      if (endpoint.method === 'DELETE') await withToken(request, requireNoBody(c.req.raw, exchange, options));
      const answer = await endpoint.handle(request);
      if (own.turns?.hasPassed() !== true) noteShortRequest();
      releaseWhenSent(answer, c.env?.outgoing);
      const cutOff = () => c.env?.outgoing?.destroy();
      if (answer.events !== undefined) return respond(exchange, renderEvents(answer.events(cutOff), answer.headers));
      const rendered = renderAnswer(answer, exchange.version, exchange.origin + exchange.prefix, (error) => {
        const { requestId, globalRequestId } = exchange;
        // An error because the client has disconnected is no error of the service.
        if (!hasClientLeft(c.env ?? {}))
          logger.error({ err: error, requestId, globalRequestId }, 'An answer was cut off');
        cutOff();
      });
      return respond(exchange, rendered);
    });
  }
  app.notFound((c) => {
    const { path } = c.get('exchange');
    throw new ApiError(404, '', { vary: false, sentence: `There is no path ${path.slice(0, longestShown)} here.` });
  });
}

/** How much of a path an error shows. */
const longestShown = 200;

/**
 * In OpenStack's versions a path has another meaning than it says where upstream's router takes it so: a line feed at its end is ignored, and
 * escapes that are no UTF-8 stand for themselves.
 *
 * @throws ApiError 400 for such a path in a version of our own, where it might name another project
 */
function requireExactPath({ api, version, path, isDecoded }: Exchange): void {
  if (!isOwn(api.service, version)) return;
  const shown = path.slice(0, longestShown);
  if (!isDecoded)
    throw badRequest(
      `The path ${shown} has a percent sign that begins no byte of UTF-8; write %25 for the sign itself.`,
    );
  if (path.endsWith('\n')) throw badRequest(`The path ${JSON.stringify(shown)} ends with a line feed, %0A.`);
}

/** @throws ApiError 400 for parameters where the operation has none: a client that sends `DELETE ...?dry_run=true` wants nothing deleted */
function requireNoParameters(endpoint: Route, request: ApiRequest, { api, version, path }: Exchange): void {
  if (endpoint.takesParameters || !isOwn(api.service, version)) return;
  const [parameter] = request.query().entries;
  if (parameter === undefined) return;
  const [name] = parameter;
  throw badRequest(
    `Invalid query string parameters: '${name.slice(0, longestShown)}' is unknown. ${endpoint.method} ${path.slice(0, longestShown)} ` +
      `has no parameters${endpoint.wantsJson ? '; what it takes is in the body' : ''}.${endpoint.method === 'GET' ? '' : ' Nothing was changed.'}`,
  );
}

/** @throws ApiError 400 for a body of DELETE, such as `{"generation": 1}`, by which a client may want to guard what it deletes */
async function requireNoBody(
  raw: Request,
  { api, version, path }: Exchange,
  { limitBytes }: MountOptions,
): Promise<void> {
  if (!isOwn(api.service, version) || !(await hasBody(raw, limitBytes))) return;
  throw badRequest(`DELETE ${path.slice(0, longestShown)} takes no body. Nothing was changed.`);
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
    const refused = (detail: string): ApiError =>
      new ApiError(406, detail, { sentence: `${detail}, and the header Accept has: ${exchange.accept}` });
    if (!endpoint.answersEvents) throw refused('Only application/json is provided');
    if (!accepts(exchange.accept, eventStream)) throw refused(`Only application/json and ${eventStream} are provided`);
  }
  if (endpoint.wantsJson && exchange.contentType.split(';')[0]?.trim() !== 'application/json') {
    throw new ApiError(415, `The media type ${exchange.contentType || 'None'} is not supported, use application/json`, {
      sentence:
        exchange.contentType === ''
          ? 'The header Content-Type is missing. Send a body in JSON, and Content-Type: application/json.'
          : `The media type ${exchange.contentType} is not supported. Send the body in JSON, with Content-Type: application/json.`,
    });
  }
  const { contentEncoding: coding } = exchange;
  if (endpoint.wantsJson && isOwn(exchange.api.service, exchange.version) && !/^\s*(identity\s*)?$/i.test(coding)) {
    throw new ApiError(
      415,
      `The Content-Encoding ${coding.slice(0, longestShown)} is not supported. Send the body as it is, without Content-Encoding.`,
    );
  }
}

/** How long a body may take without another check of the token; a client may send it for `[api] client_timeout`. */
const soonMs = 1_000;

/** What a request has in its body. @throws ApiError 401 where the body took long, and the token is no longer valid now */
async function withToken<T>({ requireToken }: Pick<ApiRequest, 'requireToken'>, body: Promise<T>): Promise<T> {
  const beganMs = performance.now();
  const read = await body;
  if (performance.now() - beganMs > soonMs) await requireToken();
  return read;
}

/** The request as the handler of an endpoint gets it. @param own notes the turns that the handler takes */
function apiRequest(
  c: Context<HonoEnv>,
  endpoint: BoundEndpoint,
  options: MountOptions,
  own: { turns?: Turns },
): ApiRequest {
  const { policy, limitBytes } = options;
  const exchange = c.get('exchange');
  const { raw } = c.req;
  const { dialect } = exchange.api;
  const ifMatch = readIfMatch(raw.headers, endpoint, exchange);
  const allowedOwners = (rule: string): AllowsOwner | undefined => {
    const { identity } = exchange;
    const forAny = policy.allowsAny(rule, identity);
    if (forAny === true) return undefined;
    if (forAny === false) throw forbidden(rule, identity, dialect);
    return ({ projectId, userId }) => policy.allows(rule, identity, { project_id: projectId, user_id: userId });
  };
  const requireToken = async (): Promise<void> => {
    const refused = await exchange.authenticateAgain?.();
    if (refused !== undefined) throw new TokenRefused(refused);
  };
  const gone = () => goneSignal(c.env ?? {});
  const turns = (): Turns => {
    own.turns ??= openTurns(gone);
    return own.turns;
  };
  let query: Query | undefined;
  let body: JsonBody | undefined;
  const bodyOf = (): JsonBody => {
    body ??= openJsonBody(raw, {
      limitBytes,
      dialect,
      turns,
      uniqueKeys: isOwn(exchange.api.service, exchange.version),
    });
    return body;
  };
  return {
    version: exchange.version,
    identity: exchange.identity,
    turns,
    ifMatch,
    param: (name) => c.req.param(name) ?? '',
    gone,
    owners: endpoint.ownerDecides === true ? allowedOwners(endpoint.policy ?? '') : undefined,
    allowedOwners,
    isRuleWritten: policy.isWritten,
    forbidden: (rule, why) => forbidden(rule, exchange.identity, dialect, why),
    requireToken,
    refusalNow: async (rule) => {
      try {
        await requireToken();
        authorize(policy, rule, exchange.identity, dialect);
        return undefined;
      } catch (error) {
        return answeredError(error, exchange, raw.method, options);
      }
    },
    // Not a getter: V8 would make a hidden class for each request, and keep all that it refers to until the whole heap
    // is collected. Without a getter, the garbage collection takes a tenth of the time.
    query: () => {
      query ??= parseQuery(exchange.search);
      return query;
    },
    json: (schema) => withToken({ requireToken }, bodyOf().read(schema)),
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
    `If-Match needs microversion ${versionText(since)}, and the request is made at ` +
      `${versionText(version)}. ` +
      (newestOf(service) < since
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
 * @param target what the rule compares with the identity; by default nothing, since most requests are not about a project. With
 *   upstream it is the caller itself, which `project_id:%(project_id)s` always matches
 * @throws ApiError 403
 */
export function authorize(
  policy: Policy,
  rule: string,
  identity: Identity,
  dialect: Pick<Dialect, 'forbidden'>,
  target: PolicyTarget = noTarget,
): void {
  if (policy.allows(rule, identity, target)) return;
  const { projectId = null } = identity;
  const isOnlyItsOwn =
    target !== noTarget && target.project_id === null && policy.allows(rule, identity, { project_id: projectId });
  const why = isOnlyItsOwn ? `It may ask for what its own project has: project_id=${projectId}, and no provider.` : '';
  throw forbidden(rule, identity, dialect, why);
}

const noTarget: PolicyTarget = { project_id: null };

/** The error names the user, the project and the roles of the token: a client may send the token of another team by mistake. */
const forbidden = (rule: string, caller: Identity, dialect: Pick<Dialect, 'forbidden'>, why = ''): ApiError => {
  const detail = dialect.forbidden(rule);
  return new ApiError(403, detail, {
    vary: false,
    sentence: [detail, why, callerText(caller)].filter(Boolean).join(' '),
  });
};

function callerText({ userId, projectId, domainId, systemScope, roles }: Identity): string {
  const scope = [
    ['project', projectId],
    ['domain', domainId],
    ['system', systemScope],
  ].flatMap(([name, id]) => (id === undefined ? [] : [` in ${name} ${id}`]));
  const having = roles.length === 0 ? 'no role' : `the roles ${roles.join(', ')}`;
  return `The token is of user ${userId}${scope.join('')}, and has ${having}.`;
}
