import type { MiddlewareHandler } from 'hono';
import type { Logger } from 'pino';
import { nobody } from '../api/identity.ts';
import { versionText } from '../api/microversions.ts';
import type { Config } from '../config/config.ts';
import { onBehalfOf } from '../request_ids.ts';
import type { Exchange, HonoEnv } from './exchange.ts';
import { incomingOf, pathStart, targetOf } from './path.ts';
import { forwardedOrigin, notForwarded, readForwarded } from './proxy_headers.ts';
import { newRequestId, requestIdHeader } from './request_id.ts';
import { apiOf, type ServedApi } from './served_api.ts';

/** Gives each request its id, answers with it, and logs one line when it is answered. */
export const identifyAndLog = (
  apis: readonly [...ServedApi[], ServedApi],
  logger: Logger,
  { enableProxyHeadersParsing }: Config['osloMiddleware'],
): MiddlewareHandler<HonoEnv> =>
  async function identifyAndLog(c, next) {
    const startedMs = performance.now();
    const request = c.req.raw;
    const accept = request.headers.get('accept');
    const incoming = incomingOf(c.env);
    const target = targetOf(request.url, incoming);
    const forwarded = enableProxyHeadersParsing ? readForwarded(request.headers) : notForwarded;
    const globalId = request.headers.get(requestIdHeader);
    const requestId = newRequestId();
    const globalRequestId = globalId !== null && isRequestId(globalId) ? globalId : undefined;
    c.set('exchange', {
      requestId,
      api: apiOf(apis, target.path),
      globalRequestId,
      accept: accept === null || accept === '' || accept === '*/*' ? 'application/json' : accept,
      contentType: request.headers.get('content-type') ?? '',
      path: target.path,
      search: target.search,
      origin: forwardedOrigin(request.url.slice(0, pathStart(request.url)), forwarded),
      prefix: forwarded.prefix,
      client: forwarded.client ?? incoming?.socket.remoteAddress,
      identity: nobody,
      version: -1,
      quiet: false,
    });
    await onBehalfOf([{ requestId, globalRequestId }], next);
    c.res.headers.set(requestIdHeader, requestId);
    const { exchange } = c.var;
    const level = exchange.quiet && c.res.ok ? 'debug' : 'info';
    if (logger.isLevelEnabled(level)) logger[level](entryOf(exchange, request.method, c.res, startedMs), 'request');
  };

/** What the log says of a request; what is not known is left out. */
function entryOf(exchange: Exchange, method: string, answer: Response, startedMs: number) {
  const { identity, version, api } = exchange;
  return {
    requestId: exchange.requestId,
    globalRequestId: exchange.globalRequestId,
    method,
    url: exchange.prefix + exchange.path + exchange.search,
    client: exchange.client,
    status: answer.status,
    bytes: lengthOf(answer),
    microversion: version < 0 ? undefined : versionText(api.parts.service, version),
    user: identity.userId || undefined,
    project: identity.projectId,
    domain: identity.domainId,
    systemScope: identity.systemScope,
    userDomain: identity.userDomainId,
    projectDomain: identity.projectDomainId,
    ms: Math.round((performance.now() - startedMs) * 100) / 100,
  };
}

/** Of the body, in bytes, where its answer says so. */
function lengthOf(answer: Response): number | undefined {
  const length = answer.headers.get('content-length');
  return length === null ? undefined : Number(length);
}

const isRequestId = (text: string): boolean => /^req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
