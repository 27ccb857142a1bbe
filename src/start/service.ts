import type { Hono } from 'hono';
import { type Logger, pino } from 'pino';
import type { Database } from '../../db/engine/connect.ts';
import type { EmbeddedOrigin } from '../../db/engine/embedded.ts';
import { requireUsable } from '../../db/schema/executed_migrations.ts';
import { withReadOnlyRemedy } from '../../db/schema/privileges.ts';
import type { Keystone } from '../access/keystone/authenticate.ts';
import type { ServiceUserTrial } from '../access/keystone/service_token.ts';
import { publicAddress } from '../access/keystone/settings.ts';
import { openPolicy } from '../access/policy/policy.ts';
import type { Tokens } from '../access/tokens/authenticate.ts';
import { openProviderWrites } from '../api/resource_providers/provider_writes.ts';
import { routes } from '../api/routes.ts';
import { openAllocationReads } from '../claims/allocation_reads.ts';
import { openClaims } from '../claims/claims.ts';
import { forgetFromTimeToTime, openDeletions, removeEndedConsumers } from '../claims/deletions.ts';
import { keepHistory } from '../claims/history.ts';
import { compactFromTimeToTime, countingOptions, openLimitReads } from '../claims/limits.ts';
import { openWaiting, type WaitingClaims } from '../claims/waiting/waiting.ts';
import type { Config } from '../config/config.ts';
import { type Followers, openFollowers } from '../fleet/follow/followers.ts';
import { compareFromTimeToTime } from '../fleet/keep/comparison.ts';
import { type FleetKeeper, openFleet, pruneFromTimeToTime } from '../fleet/keep/keeper.ts';
import { type AppOptions, createApp, createMetricsApp } from '../http/app.ts';
import { type Authentication, asOperator, byKeystone, byTokens, withoutKeystone } from '../http/authentication.ts';
import { placementDialect } from '../http/dialect.ts';
import { bindEndpoints } from '../http/dispatch.ts';
import type { HonoEnv } from '../http/exchange.ts';
import { servesConsole } from '../http/own_hosts.ts';
import type { RefusedConnection } from '../http/server/connections.ts';
import { type LogHealth, logSlowStatements } from '../log/log.ts';
import { openOutages } from '../log/outages.ts';
import type { Gathering } from '../metrics/gathering.ts';
import { openIdWatch } from '../metrics/id_watch.ts';
import { type Metrics, openMetrics } from '../metrics/metrics.ts';
import { placementService } from '../placement/microversions.ts';
import { type Service, upTo, versionOfText } from '../placement/versions.ts';
import type { Endpoint } from '../rest/endpoint.ts';
import { openConfiguredDatabase, prepareDatabase } from './database.ts';

// Parts that only some configurations use. Other configurations do not load them, which saves memory and time at the start.
const keystoneParts = () => import('../access/keystone/authenticate.ts');
const tokenParts = () => import('../access/tokens/authenticate.ts');
const computeParts = () => import('../compute/compute_api.ts');
const consoleParts = () => import('../http/console.ts');

/** The whole service, without a socket: `app.request(...)` is a request to it. */
export type PlacementService = {
  readonly app: Hono<HonoEnv>;
  /** The app for `[metrics] host` and `port`; undefined if `/metrics` has no separate address. */
  readonly metricsApp: Hono<HonoEnv> | undefined;
  /** Makes the app for the owner of this process, which requires no token. */
  operatorApp(): Hono<HonoEnv>;
  /** Logs and counts a request that a server refuses before the app gets it. */
  readonly onRefused: (refused: RefusedConnection) => void;
  readonly database: Database;
  readonly fleet: FleetKeeper;
  /** The clients that follow changes. */
  readonly followers: Pick<Followers, 'size' | 'takeSeat'>;
  /** The claims that wait. */
  readonly waiting: Pick<WaitingClaims, 'size'>;
  /** Requests a token of another service user, or with another password. */
  tryServiceUser(settings: Config['keystoneAuthtoken']): Promise<ServiceUserTrial>;
  /** Uses another service user, or another password, for Keystone. @throws Error where settings are missing */
  renewServiceUser(settings: Config['keystoneAuthtoken']): void;
  /** Reads the policy files again, or other ones. @returns why the rules stay as they were, one sentence for each reason */
  renewPolicy(settings: Config['osloPolicy']): readonly string[];
  /** Ends the streams of clients that follow changes, and answers requests that wait, before the server ends. */
  endWaits(): void;
  close(): Promise<void>;
};

/**
 * Opens the database, migrates its schema if the configuration says so (always on the embedded database), makes sure
 * that the standard traits and classes exist, and loads the fleet.
 *
 * @param options.embedded where a new embedded database comes from
 * @param options.logHealth what is known of the log of `options.logger`, for /metrics
 * @param options.tlsEndsMs when the certificate of this process expires, for /metrics
 * @param options.gathering present if this process is one of several that serve one port
 * @param options.embeddedStopped called when the embedded database has stopped by itself; then the process has to end
 * @param options.speaks the microversions that are offered; default: all up to [api] max_microversion
 * @throws Error with the remedy if the schema is missing or old and may not be migrated, if an import is unfinished, or
 *   if the policy files or the settings of Keystone cannot be used
 */
export async function openService(
  config: Config,
  options: {
    readonly embedded?: EmbeddedOrigin;
    readonly logger?: Logger;
    readonly logHealth?: LogHealth;
    readonly tlsEndsMs?: () => number | undefined;
    readonly gathering?: Gathering;
    readonly speaks?: Service;
    readonly embeddedStopped?: (error: Error) => void;
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
    config.api.authStrategy === 'keystone'
      ? (await keystoneParts()).openKeystone(config.keystoneAuthtoken, logger)
      : undefined;
  const outages = openOutages(logger);
  const database = await openConfiguredDatabase(config, {
    embedded: options.embedded,
    embeddedStopped: options.embeddedStopped,
    warn: (line) => logger.warn(line),
    onStatement: logSlowStatements(logger, config.placementDatabase.slowStatementMs),
    onRefused: outages.refused,
    statementTimeoutMs: config.placementDatabase.statementTimeout * 1000,
  });
  /** The functions that close the open parts, in the order in which the parts were opened. */
  const ends: (() => unknown)[] = [() => keystone?.close(), () => database.close()];
  const close = async (): Promise<void> => {
    for (const end of ends.toReversed()) await end();
  };
  try {
    await prepareDatabase(database, config.placementDatabase);
    const tokens =
      config.api.authStrategy === 'tokens'
        ? await (await tokenParts()).openTokens(database, config.jwt, logLines)
        : undefined;
    ends.push(() => tokens?.close());
    const fleet = await openFleet(database, outages);
    const reported = { logger, outages };
    const ids = openIdWatch(database, reported);
    ends.push(ids.close);
    await ids.check();
    ends.push(
      pruneFromTimeToTime(database, reported, config.changes.keep * 1000),
      forgetFromTimeToTime(database, reported, config.placement.keepFormerConsumers),
      await keepHistory(database, reported, config.history),
    );
    const followers = openFollowers(database, fleet, config.changes);
    ends.push(followers.end);
    const { gathering } = options;
    const limits = countingOptions(config);
    const check = async (): Promise<void> => {
      await fleet.fresh();
      // A service that only reads would not notice that the database takes no writes, or has lost its schema.
      await requireUsable(database).catch((error: unknown) => {
        outages.notice(error);
        throw error;
      });
    };
    const { logHealth, tlsEndsMs } = options;
    const metrics = config.metrics.enabled
      ? openMetrics(database, fleet, { ...config.metrics, gathering, logger, logHealth, tlsEndsMs, ids, check, limits })
      : undefined;
    if (metrics !== undefined) keystone?.observe(metrics.ofKeystone());
    const claims = openClaims(database, fleet, {
      conflictRetryCount: config.placement.allocationConflictRetryCount,
      ...limits,
      ...(metrics === undefined ? {} : { onRetry: metrics.claimRetried, onEnd: metrics.claimEnded }),
    });
    const waiting = openWaiting(database, fleet, claims, {
      maxWaiting: config.placement.maxWaiting,
      limits: openLimitReads(database, limits),
      ...(metrics === undefined ? {} : { onPlaced: metrics.claimWaited }),
    });
    metrics?.showWaiting(waiting);
    ends.push(waiting.close, waiting.end);
    const service: Service = {
      ...upTo(options.speaks ?? placementService, versionOfText(config.api.maxMicroversion)),
      defaultVersion: options.speaks?.defaultVersion ?? versionOfText(config.api.defaultVersion),
    };
    const shared = { config, database, fleet, logger };
    const compute = config.compute.enabled ? (await computeParts()).openComputeApi({ ...shared, reported }) : undefined;
    ends.push(() => compute?.close());
    const isCounting = (): boolean => fleet.known.limits.isCounting;
    const stopRemoving = removeEndedConsumers(database, {
      ...reported,
      // A process that gets no claims would not notice the first limit. If the database is unavailable, the next claim gets the error.
      onCounting: (counting) => {
        if (counting !== isCounting()) fleet.fresh().catch(() => {});
      },
      ...(metrics === undefined ? {} : { onRemoved: metrics.consumersRemoved, onSearched: metrics.endedTermsSearched }),
    });
    const stopComparing = compareFromTimeToTime(database, fleet, {
      ...reported,
      everyMs: config.placementDatabase.compareEvery * 1000,
      ...(metrics === undefined ? {} : { onDifference: metrics.fleetDiffered }),
    });
    ends.push(stopRemoving, stopComparing, compactFromTimeToTime(database, fleet, reported));
    const deletions = openDeletions(database, {
      isCounting,
      // Claims that wait get the room at once, before a refresh shows it.
      onReleased: (write) => {
        if (waiting.size > 0 && !fleet.applyOwnWrite(write)) waiting.noteWrite();
      },
    });
    const allocationReads = openAllocationReads(database);
    const providerWrites = openProviderWrites(database, fleet);
    const placement = {
      root: '',
      openPaths: ['/', ''],
      endpoints: bindEndpoints(
        routes.map((endpoint) => withWriteNotes(endpoint, waiting)),
        {
          ...shared,
          providerWrites,
          claims,
          waiting,
          deletions,
          allocationReads,
          followers,
          service,
        },
      ),
      service,
      dialect: placementDialect,
    };
    const apis = compute === undefined ? ([placement] as const) : ([compute.served, placement] as const);
    const appOptions: AppOptions = {
      config,
      authentication: authenticationBy({ keystone, tokens }, config.keystoneAuthtoken),
      policy,
      probed: { check },
      metrics,
      mountConsole: servesConsole(config) ? (await consoleParts()).mountConsole : undefined,
      outages,
      logger,
    };
    return {
      app: createApp(apis, appOptions),
      metricsApp: createMetricsApp(apis, appOptions),
      operatorApp: () => createApp(apis, { ...appOptions, authentication: asOperator, mountConsole: undefined }),
      onRefused: noteRefused(logger, metrics),
      database,
      fleet,
      followers,
      waiting,
      tryServiceUser: async (settings) => keystone?.tryServiceUser(settings),
      renewServiceUser: (settings) => keystone?.renewServiceUser(settings),
      renewPolicy: policy.renew,
      endWaits: () => {
        followers.end();
        waiting.end();
      },
      close,
    };
  } catch (error) {
    await close();
    throw withReadOnlyRemedy(error); // the fleet is loaded by a transaction that writes
  }
}

/** Lets waiting claims check what a write has changed. Writes of claims need no such note: the known fleet shows them immediately. */
function withWriteNotes<Dependencies>(
  endpoint: Endpoint<Dependencies>,
  { noteWrite }: Pick<WaitingClaims, 'noteWrite'>,
): Endpoint<Dependencies> {
  const { method, path, handle } = endpoint;
  if (method === 'GET' || path.startsWith('/allocations')) return endpoint;
  return {
    ...endpoint,
    handle: async (request, dependencies) => {
      const answer = await handle(request, dependencies);
      noteWrite();
      return answer;
    },
  };
}

function authenticationBy(
  { keystone, tokens }: { readonly keystone: Keystone | undefined; readonly tokens: Tokens | undefined },
  settings: Config['keystoneAuthtoken'],
): Authentication {
  if (tokens !== undefined) return byTokens(tokens);
  if (keystone === undefined) return withoutKeystone;
  return byKeystone(keystone, {
    wwwAuthenticateUri: publicAddress(settings),
    delayed: settings.delayAuthDecision,
  });
}

/** Logs and counts a request that the server refuses before the app gets it; the app logs and counts all other requests. */
const noteRefused =
  (logger: Logger, metrics: Metrics | undefined) =>
  (refused: RefusedConnection): void => {
    metrics?.refused(refused.reason);
    logger.info(refused, 'refused');
  };
