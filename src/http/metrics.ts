import type { Hono, MiddlewareHandler } from 'hono';
import { metricsRule } from '../access/policy/defaults.ts';
import type { Policy } from '../access/policy/policy.ts';
import type { Config } from '../config/config.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { socketFileOf } from '../text/socket_address.ts';
import type { Authentication } from './authentication.ts';
import { authorize } from './dispatch.ts';
import type { HonoEnv } from './exchange.ts';
import { answerOptions } from './probes.ts';
import type { Address } from './server/listen.ts';

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
