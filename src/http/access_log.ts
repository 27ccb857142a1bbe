import type { MiddlewareHandler } from 'hono';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { onBehalfOf } from '../log/log.ts';
import { versionText } from '../rest/versions.ts';
import type { ServedApi } from './dialect.ts';
import { beginExchange, type Exchange, type HonoEnv, requestIdHeader } from './exchange.ts';

/** Gives each request its id, answers with it, and logs one line when it is answered. */
export const identifyAndLog = (
  apis: readonly [...ServedApi[], ServedApi],
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
  const { identity, version, api } = exchange;
  return {
    requestId: exchange.requestId,
    globalRequestId: exchange.globalRequestId,
    method,
    url: exchange.prefix + exchange.path + exchange.search,
    client: exchange.client,
    status,
    bytes,
    microversion: version < 0 ? undefined : versionText(api.service, version),
    user: identity.userId || undefined,
    project: identity.projectId,
    domain: identity.domainId,
    systemScope: identity.systemScope,
    userDomain: identity.userDomainId,
    projectDomain: identity.projectDomainId,
    ms: Math.round((performance.now() - startedMs) * 100) / 100,
  };
}
