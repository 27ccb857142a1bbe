import type { Handler, Hono, MiddlewareHandler } from 'hono';
import { failureKind } from '../../db/engine/failures.ts';
import type { HonoEnv } from './exchange.ts';

/** The service that the probes check. */
export type ProbedService = {
  /** Rejects where the service cannot serve requests, also if only writes are refused. */
  readonly check: () => Promise<unknown>;
};

/** A database that has not answered after this time counts as down, before the probe itself times out. */
const checkTimeoutMs = 2_000;

/**
 * Mounts the probes of load balancers and Kubernetes, which need no token: `/healthcheck` as oslo.middleware answers it
 * (200 `OK`, HEAD 204, 503), and `/readyz` with the same meaning. Successes are logged at level debug only.
 *
 * @param method HAProxy probes by OPTIONS unless it is configured otherwise. OPTIONS is mounted before CORS, which would answer 200
 *   whatever the state is; GET and HEAD are mounted after it. A preflight of a page is no probe.
 */
export function mountProbes(app: Hono<HonoEnv>, { check }: ProbedService, method: 'GET' | 'OPTIONS'): void {
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

/** Answers OPTIONS for a path that health checks may call: 200, and the allowed methods. */
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
    case 'access refused':
      return 'The database refuses the login of the service: its password, role or database was changed';
    case 'not permitted':
      return 'The role of the service lacks a privilege in the database';
    case 'other schema':
      return 'Tables of the database are gone, or of another release';
    case 'no space left':
      return 'The database has no disk or memory left, or cannot use its files';
    case 'no connection left':
      return 'The database has no connection left for the service';
    case 'prepared statements lost':
      return 'A pooler of database connections does not support prepared statements';
    default:
      return 'The database cannot be reached';
  }
}

const late = (): Promise<string> =>
  new Promise((resolve) => {
    setTimeout(resolve, checkTimeoutMs, `The database has not answered within ${checkTimeoutMs} ms`).unref();
  });
