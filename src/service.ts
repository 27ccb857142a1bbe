import type { Hono } from 'hono';
import { type Logger, pino } from 'pino';
import type { Database } from '../db/connect.ts';
import { placementService, type Service, upTo } from './api/microversions.ts';
import { routes } from './api/routes.ts';
import { openAllocationReads } from './claims/allocation_reads.ts';
import { openClaims } from './claims/claims.ts';
import { openDeletions } from './claims/deletions.ts';
import { computeDialect } from './compute/dialect.ts';
import { openHeartbeats } from './compute/heartbeats.ts';
import { computeService } from './compute/microversions.ts';
import { retireSilentServices } from './compute/retirement.ts';
import { computeRoutes } from './compute/routes.ts';
import { openPaths as computeOpenPaths } from './compute/versions.ts';
import type { Config } from './config/config.ts';
import { openConfiguredDatabase } from './database/open_database.ts';
import { prepareDatabase } from './database/prepare_database.ts';
import { type FleetKeeper, openFleet } from './fleet/keeper.ts';
import { openProviderWrites } from './fleet/provider_writes.ts';
import { pruneChanges } from './fleet/prune.ts';
import { createApp } from './http/app.ts';
import { type Authentication, byKeystone, withoutKeystone } from './http/authentication.ts';
import { placementDialect } from './http/dialect.ts';
import type { HonoEnv } from './http/exchange.ts';
import { type Keystone, openKeystone } from './keystone/authenticate.ts';
import { openOutages } from './log/outages.ts';
import { logSlowStatements } from './log/slow_statements.ts';
import type { Gathering } from './metrics/gathering.ts';
import { openMetrics } from './metrics/metrics.ts';
import { openPolicy } from './policy/policy.ts';

/** The whole service, without a socket: `app.request(...)` is a request to it. */
export type PlacementService = {
  readonly app: Hono<HonoEnv>;
  readonly database: Database;
  readonly fleet: FleetKeeper;
  close(): Promise<void>;
};

/**
 * Opens the database, brings its schema up to date where that is asked for (always on the embedded one), makes sure that the
 * standard traits and classes exist, and loads the fleet.
 *
 * @param options.embeddedTemplate a dump of an embedded database that a new one starts from
 * @param options.gathering where this process is one of several that serve one port
 * @param options.speaks the microversions that are offered, where they are not all up to [api] max_microversion
 * @throws Error where the schema is missing or old and may not be migrated, an import is unfinished, or the policy files or the
 *   settings of Keystone cannot be used, with the remedy.
 */
export async function openService(
  config: Config,
  options: {
    readonly embeddedTemplate?: Blob;
    readonly logger?: Logger;
    readonly gathering?: Gathering;
    readonly speaks?: Service;
  } = {},
): Promise<PlacementService> {
  const logger = options.logger ?? pino({ level: 'silent' });
  const logLines = {
    info: (line: string) => logger.info(line),
    warn: (line: string) => logger.warn(line),
    error: (line: string) => logger.error(line),
  };
  const policy = openPolicy(config.osloPolicy, logLines);
  const keystone =
    config.api.authStrategy === 'keystone' ? openKeystone(config.keystoneAuthtoken, logLines) : undefined;
  const database = await openConfiguredDatabase(config, {
    ...(options.embeddedTemplate === undefined ? {} : { embeddedTemplate: options.embeddedTemplate }),
    warn: (line) => logger.warn(line),
    onStatement: logSlowStatements(logger, config.placementDatabase.slowStatementMs),
    statementTimeoutMs: config.placementDatabase.statementTimeout * 1000,
  });
  try {
    await prepareDatabase(database, config.placementDatabase);
    const outages = openOutages(logger);
    const fleet = await openFleet(database, outages);
    const stopPruning = pruneChanges(database, logger);
    const { gathering } = options;
    const metrics = config.metrics.enabled ? openMetrics(database, fleet, { ...config.metrics, gathering }) : undefined;
    const uncounted = openClaims(database, fleet, {
      conflictRetryCount: config.placement.allocationConflictRetryCount,
      ...(metrics === undefined ? {} : { onRetry: metrics.claimRetried }),
    });
    const claims = metrics === undefined ? uncounted : metrics.counting(uncounted);
    const service = upTo(options.speaks ?? placementService, config.api.maxMicroversion);
    const { enabled, serviceDownTime, retireAfter } = config.compute;
    const heartbeats = openHeartbeats(database, fleet, serviceDownTime);
    const stopRetiring = retireSilentServices(database, enabled ? retireAfter : 0, logger);
    const deletions = openDeletions(database);
    const allocationReads = openAllocationReads(database);
    const providerWrites = openProviderWrites(database, fleet);
    const parts = { config, database, fleet, providerWrites, claims, deletions, allocationReads, heartbeats, service };
    const placement = { root: '', openPaths: ['/', ''], endpoints: routes, parts, dialect: placementDialect };
    const compute = {
      root: '/compute',
      openPaths: computeOpenPaths,
      endpoints: computeRoutes,
      parts: { ...parts, service: computeService },
      dialect: computeDialect,
    };
    const app = createApp(enabled ? [compute, placement] : [placement], {
      config,
      authentication: authenticationBy(keystone, config.keystoneAuthtoken),
      policy,
      probed: { check: () => fleet.fresh(), metrics },
      outages,
      logger,
    });
    return {
      app,
      database,
      fleet,
      close: async () => {
        await stopPruning();
        await stopRetiring();
        keystone?.close();
        await database.close();
      },
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}

function authenticationBy(keystone: Keystone | undefined, settings: Config['keystoneAuthtoken']): Authentication {
  if (keystone === undefined) return withoutKeystone;
  return byKeystone(keystone, {
    wwwAuthenticateUri: settings.wwwAuthenticateUri ?? settings.authUrl ?? '',
    delayed: settings.delayAuthDecision,
  });
}
