import { Hono, type MiddlewareHandler } from 'hono';
import { routePath } from 'hono/route';
import type { Logger } from 'pino';
import type { Policy } from '../access/policy/policy.ts';
import type { Config } from '../config/config.ts';
import { onBehalfOf } from '../log/log.ts';
import type { Outages } from '../log/outages.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { majorOf, openstackRange, rangeOf, versionText } from '../placement/versions.ts';
import { ApiError, notFoundWithoutVary } from '../request/errors.ts';
import { bareResponse, respond } from './answer.ts';
import { answeredError } from './answered_error.ts';
import type { Authentication } from './authentication.ts';
import { hasCommonForm, takeCommonForm } from './common_form.ts';
import type { mountConsole } from './console.ts';
import { allowOrigins } from './cors.ts';
import { type ServedApis, typeForHead } from './dialect.ts';
import { mountEndpoints } from './dispatch.ts';
import {
  beginExchange,
  type Exchange,
  type HonoEnv,
  incomingOf,
  requestIdHeader,
  routedPath,
  targetOf,
} from './exchange.ts';
import { type MetricsOptions, metricsAddress, mountMetrics } from './metrics.ts';
import { checksHosts, onlyOwnHosts } from './own_hosts.ts';
import { answerOptions, mountProbes, type ProbedService } from './probes.ts';
import { TokenRefused } from './unauthorized.ts';

/** What the middleware around the endpoints works with. */
export type AppOptions = {
  readonly config: Config;
  readonly authentication: Authentication;
  readonly policy: Policy;
  readonly probed: ProbedService;
  /** Undefined where `[metrics] enabled` is off. */
  readonly metrics: Metrics | undefined;
  /** Undefined where the console is not served. */
  readonly mountConsole: typeof mountConsole | undefined;
  readonly outages: Outages;
  readonly logger: Logger;
};

/**
 * Assembles what every request passes through, outside in: request id, proxy headers and log, own hosts, CORS, probes
 * and metrics, console, authentication, microversion, and then the endpoints. The order is upstream's, and clients can see it: a
 * 401 has no microversion.
 */
export function createApp(apis: ServedApis, options: AppOptions): Hono<HonoEnv> {
  const { config, authentication, policy, probed, metrics, outages, logger } = options;
  const app = emptyApp(apis, config.api, options);
  mountProbes(app, probed, 'OPTIONS');
  if (config.cors.allowedOrigin.length > 0) app.use(allowOrigins(config.cors));
  mountProbes(app, probed, 'GET');
  answerOptions(app, '/');
  if (metrics !== undefined) {
    app.use(observing(metrics));
    if (metricsAddress(config) === undefined) mountMetrics(app, metricsOptions(metrics, options));
  }
  options.mountConsole?.(app, config);
  app.use(authentication);
  app.use(negotiateVersion);
  const limitBytes = config.osloMiddleware.maxRequestBodySize;
  for (const api of apis) mountEndpoints(app, api, { policy, outages, logger, limitBytes });
  return app;
}

/**
 * The app behind `[metrics] host` and `port`, which has `/metrics` alone; undefined where `/metrics` has no address of
 * its own.
 */
export function createMetricsApp(apis: ServedApis, options: AppOptions): Hono<HonoEnv> | undefined {
  const { config, metrics } = options;
  const address = metricsAddress(config);
  if (address === undefined || metrics === undefined) return undefined;
  const app = emptyApp(apis, { ...config.api, host: address.host }, options);
  mountMetrics(app, metricsOptions(metrics, options));
  app.notFound(() => {
    throw notFoundWithoutVary('');
  });
  return app;
}

const metricsOptions = (metrics: Metrics, { config, authentication, policy }: AppOptions): MetricsOptions => ({
  metrics,
  authentication: config.metrics.requireToken ? authentication : undefined,
  policy,
});

/** An app with the middleware of every request: its id, the log, the check of the host, and the answers to errors. */
function emptyApp(
  apis: ServedApis,
  address: Config['api'],
  { config, metrics, outages, logger }: AppOptions,
): Hono<HonoEnv> {
  const app = new Hono<HonoEnv>({
    getPath: (request, options) => routedPath(targetOf(request.url, incomingOf(options?.env))),
  });
  app.use(identifyAndLog(apis, logger, config.osloMiddleware));
  if (checksHosts(address)) app.use(onlyOwnHosts(address, () => metrics?.refused('other host')));
  app.onError((error, c) => {
    if (error instanceof TokenRefused) return error.response;
    const exchange = c.get('exchange');
    const { dialect } = exchange.api;
    const apiError = answeredError(error, exchange, c.req.raw.method, { outages, logger });
    if (apiError.versions !== undefined) exchange.versions = apiError.versions;
    else if (exchange.version < 0) takeCommonForm(exchange, c.req.raw.headers);
    const rendered = dialect.renderError(apiError, {
      method: c.req.raw.method,
      accept: exchange.accept,
      contentType: exchange.contentType || 'None',
      requestId: exchange.requestId,
      version: exchange.version < 0 ? undefined : exchange.version,
      versions: exchange.versions,
    });
    const answer =
      c.req.raw.method === 'HEAD' && !hasCommonForm(exchange)
        ? { ...rendered, headers: { ...rendered.headers, 'content-type': typeForHead } }
        : rendered;
    return apiError.status === 500 ? bareResponse(answer) : respond(exchange, answer, apiError.vary);
  });
  return app;
}

/** Finds the microversion of a request, and refuses what upstream refuses before the path is looked at. */
const negotiateVersion: MiddlewareHandler<HonoEnv> = async function negotiateVersion(c, next) {
  const exchange = c.get('exchange');
  const { dialect, service } = exchange.api;
  const { headers } = c.req.raw;
  // GET / is the same for all clients, whatever the version of requests that name none.
  const usual = exchange.path === '/' ? openstackRange(service).oldest : service.defaultVersion;
  exchange.version = dialect.requestedVersion(service, headers) ?? usual;
  exchange.versions = rangeOf(service, majorOf(exchange.version)) ?? openstackRange(service);
  const length = headers.get('content-length');
  if (length !== null && length !== '' && !/^\s*\d+\s*$/.test(length)) {
    throw new ApiError(400, 'content-length header must be an integer', { vary: false });
  }
  dialect.checkContentType(exchange.contentType, Number(length ?? 0));
  await next();
};

/** Counts requests, and how long they took. */
const observing = (metrics: Metrics): MiddlewareHandler<HonoEnv> =>
  async function observe(c, next) {
    const startedMs = performance.now();
    await next();
    const { version } = c.get('exchange');
    const route = routePath(c, -1).replace(/\{.*\}$/, '');
    metrics.observe({
      method: knownMethods.has(c.req.raw.method) ? c.req.raw.method : 'other',
      route: route === '/*' ? 'none' : route,
      status: c.res.status,
      microversion: version < 0 ? '' : versionText(version),
      seconds: (performance.now() - startedMs) / 1000,
    });
  };

/** A client may invent methods, and each would be a new time series for ever. */
const knownMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Gives each request its id, answers with it, and logs one line when it is answered. */
const identifyAndLog = (
  apis: ServedApis,
  logger: Logger,
  { enableProxyHeadersParsing }: Config['osloMiddleware'],
): MiddlewareHandler<HonoEnv> =>
  async function identifyAndLog(c, next) {
    const startedMs = performance.now();
    const exchange = beginExchange(c.req.raw, c.env, apis, enableProxyHeadersParsing);
    c.set('exchange', exchange);
    const { requestId, globalRequestId } = exchange;
    await onBehalfOf([{ requestId, globalRequestId }], next);
    const { responded } = exchange;
    const headers = responded?.response === c.res ? responded.headers : undefined;
    if (headers === undefined) c.res.headers.set(requestIdHeader, requestId);
    const length = headers === undefined ? c.res.headers.get('content-length') : (headers['content-length'] ?? null);
    const answer = { status: c.res.status, bytes: length === null ? undefined : Number(length) };
    const level = exchange.quiet && c.res.ok ? 'debug' : 'info';
    if (logger.isLevelEnabled(level)) {
      logger[level](entryOf(exchange, c.req.raw.method, answer, startedMs), 'request');
    }
  };

/** The fields of a request in the log; unknown ones are left out. */
function entryOf(
  exchange: Exchange,
  method: string,
  { status, bytes }: { readonly status: number; readonly bytes: number | undefined },
  startedMs: number,
) {
  const { identity, version } = exchange;
  return {
    requestId: exchange.requestId,
    globalRequestId: exchange.globalRequestId,
    method,
    url: exchange.prefix + exchange.path + exchange.search,
    client: exchange.client,
    status,
    bytes,
    microversion: version < 0 ? undefined : versionText(version),
    user: identity.userId || undefined,
    project: identity.projectId,
    domain: identity.domainId,
    systemScope: identity.systemScope,
    userDomain: identity.userDomainId,
    projectDomain: identity.projectDomainId,
    refused: exchange.refused,
    ms: Math.round((performance.now() - startedMs) * 100) / 100,
  };
}
