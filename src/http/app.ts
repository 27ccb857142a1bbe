import { Hono, type MiddlewareHandler } from 'hono';
import type { Logger } from 'pino';
import { hasSqlstate, isLostRace, isTimedOut, isUnavailable, isUnstorable, sqlstate } from '../../db/sqlstate.ts';
import { versionText } from '../api/microversions.ts';
import type { Config } from '../config/config.ts';
import { ApiError, badRequest, conflict, errorCodes } from '../errors.ts';
import type { Outages } from '../log/outages.ts';
import type { Policy } from '../policy/policy.ts';
import { identifyAndLog } from './access_log.ts';
import type { Authentication } from './authentication.ts';
import { allowOrigins } from './cors.ts';
import { mountEndpoints } from './dispatch.ts';
import type { HonoEnv } from './exchange.ts';
import { setRangeHeaders } from './microversion.ts';
import { incomingOf, routedPath, targetOf } from './path.ts';
import { mountProbes, type Probed } from './probes.ts';
import type { ServedApi } from './served_api.ts';

/** What the layers around the endpoints work with. */
export type AppOptions = {
  readonly config: Config;
  readonly authentication: Authentication;
  readonly policy: Policy;
  readonly probed: Probed;
  readonly outages: Outages;
  readonly logger: Logger;
};

/**
 * Assembles what every request passes through, outside in: request id, proxy headers and log, CORS, probes and metrics,
 * authentication, microversion, and then the endpoints. The order is upstream's and shows: a 401 carries no microversion.
 */
export function createApp(
  apis: readonly [...ServedApi[], ServedApi],
  { config, authentication, policy, probed, outages, logger }: AppOptions,
): Hono<HonoEnv> {
  const app = new Hono<HonoEnv>({
    getPath: (request, options) => routedPath(targetOf(request.url, incomingOf(options?.env))),
  });
  app.use(identifyAndLog(apis, logger, config.osloMiddleware));
  if (config.cors.allowedOrigin.length > 0) app.use(allowOrigins(config.cors));
  mountProbes(app, probed);
  app.use(authentication);
  app.use(negotiateVersion);
  for (const api of apis) mountEndpoints(app, api, policy, logger);
  app.onError((error, c) => {
    const exchange = c.var.exchange;
    const { service } = exchange.api.parts;
    const { dialect } = exchange.api;
    const isTold = error instanceof ApiError;
    if (!isTold && !outages.notice(error)) {
      const { requestId, globalRequestId } = exchange;
      logger.error({ err: error, requestId, globalRequestId }, 'Unexpected error');
    }
    const told = isTold ? error : untold(error, exchange.requestId, c.req.raw.method);
    const response = dialect.renderError(told, {
      method: c.req.raw.method,
      accept: exchange.accept,
      contentType: exchange.contentType || 'None',
      requestId: exchange.requestId,
      minorVersion: exchange.version < 0 ? undefined : exchange.version,
      versions: { min: versionText(service, service.minMinor), max: versionText(service, service.maxMinor) },
    });
    if (told.status !== 500) {
      setRangeHeaders(response, service);
      if (exchange.version >= 0) dialect.setVersion(response, service, exchange.version, told.vary);
    }
    // Upstream says of the body that HEAD does not have what its framework says of any.
    if (c.req.raw.method === 'HEAD') response.headers.set('content-type', 'text/html; charset=UTF-8');
    return response;
  });
  return app;
}

/** What is told of an error that no endpoint foresaw: of most, nothing but where to look. */
function untold(error: unknown, requestId: string, method: string): ApiError {
  if (isUnavailable(error)) {
    return tryLater('The database cannot be reached; please retry.');
  }
  // The role, or the database, may have a lock_timeout of its own.
  if (isTimedOut(error) || hasSqlstate(error, sqlstate.lockNotAvailable)) {
    return tryLater('The database did not answer in time; please retry.');
  }
  if (isLostRace(error)) {
    // Who only reads has no conflict with anybody: a migration was in the way.
    if (method === 'GET' || method === 'HEAD') return tryLater('The database is being changed; please retry.');
    return conflict('Another request changed the same data; please retry.', errorCodes.concurrentUpdate);
  }
  if (isUnstorable(error)) {
    return badRequest(
      `The encoding of the database is not UTF-8, and has no place for a text of the request: ${error.message}.`,
    );
  }
  return new ApiError(500, `Unexpected error; the log tells more under ${requestId}.`);
}

const tryLater = (detail: string): ApiError => new ApiError(503, detail, { headers: { 'retry-after': '1' } });

const negotiateVersion: MiddlewareHandler<HonoEnv> = async function negotiateVersion(c, next) {
  const { exchange } = c.var;
  const { dialect, parts } = exchange.api;
  const { headers } = c.req.raw;
  exchange.version = dialect.requestedMinor(parts.service, headers);
  const length = headers.get('content-length');
  if (length !== null && length !== '' && !/^\s*\d+\s*$/.test(length)) {
    throw new ApiError(400, 'content-length header must be an integer', { vary: false });
  }
  dialect.checkContentType(exchange.contentType, Number(length ?? 0));
  await next();
  if (c.error !== undefined) return;
  setRangeHeaders(c.res, parts.service);
  dialect.setVersion(c.res, parts.service, exchange.version, true);
};
