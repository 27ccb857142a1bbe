import type { Handler, Hono, MiddlewareHandler } from 'hono';
import { routePath } from 'hono/route';
import { failureKind } from '../../db/engine/failures.ts';
import { metricsRule } from '../access/policy/defaults.ts';
import type { Policy } from '../access/policy/policy.ts';
import type { Config } from '../config/config.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { versionText } from '../placement/versions.ts';
import { socketFileOf } from '../text/socket_address.ts';
import type { Authentication } from './authentication.ts';
import { authorize } from './dispatch.ts';
import type { HonoEnv } from './exchange.ts';
import type { Address } from './server/listen.ts';

/** What the probes check. */
export type Probed = {
  /** Rejects where the service cannot serve requests, also if only writes are refused. */
  readonly check: () => Promise<unknown>;
};

/** A database that has not answered after this time counts as down: probes have time-outs of their own. */
const checkTimeoutMs = 2_000;

/**
 * Mounts the probes of load balancers and Kubernetes, which need no token: `/healthcheck` as oslo.middleware answers it
 * (200 `OK`, HEAD 204, 503), and `/readyz` with the same meaning. Successes are logged at level debug only.
 *
 * @param method HAProxy asks by OPTIONS unless it is told otherwise. That is mounted before CORS, which answers 200 to every OPTIONS,
 *   whatever the probe says; GET and HEAD after it. A preflight of a page is no probe.
 */
export function mountProbes(app: Hono<HonoEnv>, { check }: Probed, method: 'GET' | 'OPTIONS'): void {
  const health: Handler<HonoEnv> = async (c) => {
    c.get('exchange').quiet = true;
    const trouble = await Promise.race([check().then(() => undefined, reasonOf), late()]);
    const status = trouble === undefined ? 200 : 503;
    if (c.req.raw.method === 'HEAD') return c.body(null, status === 200 ? 204 : 503);
    const reason = trouble ?? 'OK';
    const wantsJson = c.req.header('accept')?.includes('application/json') ?? false;
    return wantsJson ? c.json({ detailed: false, reasons: [reason] }, status) : c.text(reason, status);
  };
  app.on(method, ['/healthcheck', '/readyz'], method === 'OPTIONS' ? unlessPreflight(health) : health);
}

/** Answers OPTIONS for a path which health checks may ask: 200, and which methods there are. */
export function answerOptions(app: Hono<HonoEnv>, path: string): void {
  const allow = { allow: 'GET, HEAD, OPTIONS', 'content-length': '0' };
  app.options(
    path,
    unlessPreflight((c) => c.body(null, 200, allow)),
  );
}

const unlessPreflight =
  (answer: Handler<HonoEnv>): MiddlewareHandler<HonoEnv> =>
  async (c, next) =>
    c.req.raw.headers.has('access-control-request-method') ? next() : answer(c, next);

/** The reason names no host, user or database, since probes need no token. The log has the details. */
function reasonOf(error: unknown): string {
  switch (failureKind(error)) {
    case 'read-only':
      return 'The database is read-only: it is a standby, or default_transaction_read_only is on';
    case 'commits unconfirmed':
      return 'The database does not confirm commits; its synchronous standby may be gone';
    case 'no connection left':
      return 'The database has no connection left for the service';
    case 'prepared elsewhere':
      return 'A pooler of database connections does not carry prepared statements';
    default:
      return 'The database cannot be reached';
  }
}

const late = (): Promise<string> =>
  new Promise((resolve) => {
    setTimeout(resolve, checkTimeoutMs, `The database has not answered within ${checkTimeoutMs} ms`).unref();
  });

/** Counts requests, and how long they took. */
export const observing = (metrics: Metrics): MiddlewareHandler<HonoEnv> =>
  async function observe(c, next) {
    const startedMs = performance.now();
    await next();
    const { version } = c.get('exchange');
    const route = routePath(c, -1).replace('{.+}', '');
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

/**
 * The address that serves `/metrics` and nothing else; undefined where `/metrics` is beside the API, or switched off.
 */
export function metricsAddress({ api, metrics }: Pick<Config, 'api' | 'metrics'>): Address | undefined {
  const { enabled, host = api.host, port = api.port } = metrics;
  if (!enabled || (metrics.host === undefined && metrics.port === undefined)) return undefined;
  const isThatOfTheApi = host === api.host && (socketFileOf(host) !== undefined || (port === api.port && port !== 0));
  return isThatOfTheApi ? undefined : { host, port, socketMode: api.socketMode };
}

/** What `/metrics` works with. */
export type MetricsOptions = {
  readonly metrics: Metrics;
  /** The authentication of requests for metrics; undefined where they need no token. */
  readonly authentication: Authentication | undefined;
  readonly policy: Policy;
};

/** Mounts `/metrics`. Successes are logged at level debug only. */
export function mountMetrics(app: Hono<HonoEnv>, { metrics, authentication, policy }: MetricsOptions): void {
  answerOptions(app, '/metrics');
  if (authentication !== undefined) {
    app.use('/metrics', authentication);
    app.use('/metrics', authorized(policy));
  }
  app.get('/metrics', async (c) => {
    c.get('exchange').quiet = true;
    const text = await metrics.scrape();
    return c.body(text, 200, { 'content-type': metrics.contentType, 'content-length': String(text.length) });
  });
}

const authorized = (policy: Policy): MiddlewareHandler<HonoEnv> =>
  async function authorized(c, next) {
    const { identity, api } = c.get('exchange');
    authorize(policy, metricsRule.name, identity, api.dialect);
    await next();
  };
