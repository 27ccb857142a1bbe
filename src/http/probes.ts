import type { Handler, Hono, MiddlewareHandler } from 'hono';
import { routePath } from 'hono/route';
import { versionText } from '../api/microversions.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { HonoEnv } from './exchange.ts';

/** What the probes ask. */
export type Probed = {
  /** Rejects where requests could not be served. */
  readonly check: () => Promise<unknown>;
  /** Undefined where `[metrics] enabled` is off. */
  readonly metrics: Metrics | undefined;
};

/** A database that has not answered by now is taken for one that will not: probes have time-outs of their own. */
const checkTimeoutMs = 2_000;

/**
 * Mounts, before the authentication, what load balancers, Kubernetes and Prometheus ask: `/healthcheck` as oslo.middleware
 * answers it (200 `OK`, HEAD 204, 503), `/readyz` with the same meaning, `/metrics`. Successes are logged at level debug only.
 */
export function mountProbes(app: Hono<HonoEnv>, { check, metrics }: Probed): void {
  const health: Handler<HonoEnv> = async (c) => {
    c.var.exchange.quiet = true;
    const trouble = await Promise.race([check().then(() => undefined, reasonOf), late()]);
    const status = trouble === undefined ? 200 : 503;
    if (c.req.raw.method === 'HEAD') return c.body(null, status === 200 ? 204 : 503);
    const reason = trouble ?? 'OK';
    const wantsJson = c.req.header('accept')?.includes('application/json') ?? false;
    return wantsJson ? c.json({ detailed: false, reasons: [reason] }, status) : c.text(reason, status);
  };
  app.get('/healthcheck', health);
  app.get('/readyz', health);
  if (metrics === undefined) return;
  app.use(observing(metrics));
  app.get('/metrics', async (c) => {
    c.var.exchange.quiet = true;
    return c.body(await metrics.scrape(), 200, { 'content-type': metrics.contentType });
  });
}

/** The reason names no host, user or database: probes are open to everybody. The log has it. */
const reasonOf = (): string => 'The database cannot be reached';

const late = (): Promise<string> =>
  new Promise((resolve) => {
    setTimeout(resolve, checkTimeoutMs, `The database has not answered within ${checkTimeoutMs} ms`).unref();
  });

const observing = (metrics: Metrics): MiddlewareHandler<HonoEnv> =>
  async function observe(c, next) {
    const startedMs = performance.now();
    await next();
    const { version, api } = c.var.exchange;
    const route = routePath(c, -1);
    metrics.observe({
      method: knownMethods.has(c.req.raw.method) ? c.req.raw.method : 'other',
      route: route === '/*' ? 'none' : route,
      status: c.res.status,
      microversion: version < 0 ? '' : versionText(api.parts.service, version),
      seconds: (performance.now() - startedMs) / 1000,
    });
  };

/** A client may make up methods, and each would be a series for ever. */
const knownMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
