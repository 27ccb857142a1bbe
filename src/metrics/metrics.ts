import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Database } from '../../db/engine/connect.ts';
import type { KeystoneObserver } from '../access/keystone/authenticate.ts';
import { parseShapes } from '../api/candidates/shapes.ts';
import type { ClaimEnd } from '../claims/claims.ts';
import type { CountingOptions } from '../claims/limits.ts';
import type { WaitingClaims } from '../claims/waiting/waiting.ts';
import { version } from '../config/version.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import type { LogHealth } from '../log/log.ts';
import type { ApiError } from '../request/errors.ts';
import { inPieces, openTurns, type Pieces } from '../request/turns.ts';
import { capacityText, limitsText, shapeCapacityText } from './capacity.ts';
import { atIntervals, type Gathering, textOf } from './gathering.ts';
import { registerCertificate, registerGauges, registerLog, registerState } from './gauges.ts';
import type { IdWatch } from './id_watch.ts';

/** A request that was answered. */
type ObservedRequest = {
  readonly method: string;
  /**
   * The path of the endpoint with the names of its parameters, so that there are few; `none` if there is no such
   * endpoint.
   */
  readonly route: string;
  readonly status: number;
  /** Such as `1.39`; empty if the request was answered before its microversion was read. */
  readonly microversion: string;
  readonly seconds: number;
};

/** The metrics of the service for Prometheus. */
export type Metrics = {
  readonly contentType: string;
  observe(request: ObservedRequest): void;
  /** Counts a request that was refused before it had an endpoint. */
  refused(reason: RefusedBefore): void;
  /** Counts the requests to Keystone and their outcomes, from now on. */
  ofKeystone(): KeystoneObserver;
  /** Counts a claim by its outcome. */
  readonly claimEnded: (outcome: ClaimEnd) => void;
  /** Counts a claim whose guard failed and that is judged again, as `retried`. */
  readonly claimRetried: () => void;
  /** Notes how long a claim that was placed has waited. */
  readonly claimWaited: (seconds: number) => void;
  /** Shows how many claims wait, from now on. */
  showWaiting(waiting: Pick<WaitingClaims, 'size' | 'longestSeconds'>): void;
  /** Counts consumers that were removed because their terms had expired. */
  readonly consumersRemoved: (count: number) => void;
  /** Notes how long ago the oldest term expired whose consumer still exists. */
  readonly endedTermsSearched: (overdueSeconds: number) => void;
  /** Counts that the fleet differed from the database. */
  readonly fleetDiffered: () => void;
  /** The text of a scrape: the metrics of each process that serves the port, and the capacity of the fleet. */
  scrape(): Promise<Buffer<ArrayBuffer>>;
};

/** How long a scrape waits for the database, in milliseconds: Prometheus usually gives up after 10 s. */
const databaseTimeoutMs = 2_000;

/**
 * @param options.providerLimit the number of providers whose capacity is shown; -1 means all, 0 none.
 * @param options.shapes queries whose number of placements is shown
 * @param options.shapesInterval in seconds: the shapes are counted at most once in this time, by one of the processes
 * @param options.gathering set if this process is one of several that serve one port
 * @param options.check the check that /readyz makes
 * @param options.logHealth what is known of the log; undefined where nothing is logged
 * @param options.logger gets a line the first time that a shape cannot be counted
 */
export function openMetrics(
  database: Database,
  fleet: FleetKeeper,
  options: {
    readonly providerLimit: number;
    readonly shapes: string;
    readonly shapesInterval: number;
    readonly gathering?: Gathering | undefined;
    readonly logger: Pick<Logger, 'warn'>;
    readonly ids: Pick<IdWatch, 'used'>;
    readonly check: () => Promise<unknown>;
    readonly logHealth?: LogHealth | undefined;
    /** When the certificate of this process expires, in milliseconds since 1970. */
    readonly tlsEndsMs?: (() => number | undefined) | undefined;
    /** How usages count for limits. */
    readonly limits: CountingOptions;
  },
): Metrics {
  const { gathering, logger } = options;
  const shapes = parseShapes(options.shapes);
  const loggedShapes = new Set<string>();
  const leftOut = (shape: string, error: ApiError): void => {
    if (!loggedShapes.has(shape)) logger.warn(`/metrics does not have the shape ${shape}: ${error.message}`);
    loggedShapes.add(shape);
  };
  const countShapes = (current: Fleet): Promise<string> =>
    shapeCapacityText(current, shapes, { hold: fleet.hold, leftOut });
  const labels = gathering?.labels ?? {};
  const ofProcess = processMetrics(labels);
  const register = new Registry();
  register.setDefaultLabels(labels);
  gathering?.setSources({
    figures: async () => {
      const figures = [...(await ofProcess.getMetricsAsJSON()), ...(await register.getMetricsAsJSON())];
      // The process that is scraped refreshes its own fleet and checks its readiness. Any other process does so after its report,
      // which has the results of the scrape before.
      if (underWay === undefined) void readiness.check();
      return figures;
    },
    shapes: async () => countShapes(await fleet.fresh()),
  });
  /** Where there are several processes, the primary one keeps the interval. */
  const shapesNow = atIntervals(options.shapesInterval * 1000, countShapes);
  const registers = [register];
  const readiness = openReadiness(options.check);
  /** The scrape of this process that is under way. */
  let underWay: Promise<Buffer<ArrayBuffer>> | undefined;
  /** How old the fleet was before that scrape. */
  let ageBeforeScrape: number | undefined;

  new Gauge({
    name: 'placement_build_info',
    help: 'The version that the process runs; its value is always 1.',
    labelNames: ['version'],
    registers,
  }).set({ version }, 1);
  const requests = new Counter({
    name: 'placement_requests_total',
    help: 'Requests that were answered.',
    labelNames: ['method', 'route', 'status', 'microversion'],
    registers,
  });
  const durations = new Histogram({
    name: 'placement_request_duration_seconds',
    help: 'Time from the request to the head of its answer.',
    labelNames: ['method', 'route'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const refused = new Counter({
    name: 'placement_refused_requests_total',
    help: 'Requests and connections that were refused before they were authenticated, by the reason.',
    labelNames: ['reason'],
    registers,
  });
  // The series begin at 0, so that queries see the first event as an increase.
  for (const reason of refusalReasons) refused.inc({ reason }, 0);
  const claimed = new Counter({
    name: 'placement_claims_total',
    help: 'Writes of allocations, by how they ended; retried: each time that one lost a race and was judged again.',
    labelNames: ['outcome'],
    registers,
  });
  const waited = new Histogram({
    name: 'placement_claim_wait_seconds',
    help: 'How long claims waited that were placed after a wait (Prefer: wait).',
    buckets: [0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600],
    registers,
  });
  const ended = new Counter({
    name: 'placement_terms_ended_total',
    help: 'Consumers that this process removed because their terms had ended.',
    registers,
  });
  /** When the oldest term expired whose consumer may still exist, by `performance.now()`. */
  let oldestEndMs = performance.now();
  registerGauges(register, [
    [
      'placement_terms_overdue_seconds',
      'The time since the end of the oldest term whose consumer may still exist. It grows while the database cannot be reached.',
      () => (performance.now() - oldestEndMs) / 1000,
    ],
  ]);
  const differences = new Counter({
    name: 'placement_fleet_differences_total',
    help: 'How often a comparison found that the database was changed unnoticed, so that the fleet was loaded whole.',
    registers,
  });
  registerState(
    register,
    { database, fleet, ids: options.ids },
    { fleetAgeSeconds: () => ageBeforeScrape ?? fleet.ageSeconds(), isReady: readiness.isReady },
  );
  if (options.logHealth !== undefined) registerLog(register, options.logHealth);
  if (options.tlsEndsMs !== undefined) registerCertificate(register, options.tlsEndsMs);

  const scrape = async (): Promise<Buffer<ArrayBuffer>> => {
    // Read the age before the scrape refreshes the fleet.
    ageBeforeScrape = fleet.ageSeconds();
    // Without the database the capacity is left out. The metrics of the process are needed most at such a time.
    const late = sleep(databaseTimeoutMs, undefined, { ref: false });
    const [current] = await Promise.all([
      Promise.race([fleet.fresh().catch(() => undefined), late]),
      readiness.check(),
    ]);
    const capacity = current === undefined ? [] : await inTurns(capacityText(current, options.providerLimit));
    const limits = current === undefined ? '' : await limitsText(database, current, options.limits).catch(() => '');
    if (gathering === undefined) {
      const figures = `${await ofProcess.metrics()}\n${await register.metrics()}`;
      return joined(figures, capacity, limits + (current === undefined ? '' : await shapesNow(current)));
    }
    const gathered = await gathering.gather();
    return joined(await textOf(gathered.figures), capacity, limits + gathered.shapes);
  };

  return {
    contentType: register.contentType,
    observe: ({ method, route, status, microversion, seconds }) => {
      requests.inc({ method, route, status, microversion });
      durations.observe({ method, route }, seconds);
    },
    ofKeystone: () => registerKeystone(register),
    refused: (reason) => refused.inc({ reason }),
    claimEnded: (outcome) => claimed.inc({ outcome }),
    claimRetried: () => claimed.inc({ outcome: 'retried' }),
    claimWaited: (seconds) => waited.observe(seconds),
    showWaiting: (waiting) =>
      registerGauges(register, [
        [
          'placement_waiting_claims',
          'Claims of this process that wait for room, for a limit or for their turn.',
          () => waiting.size,
        ],
        [
          'placement_waiting_longest_seconds',
          'How long the claim has waited that has waited longest of those that wait; 0 where none waits.',
          () => waiting.longestSeconds(),
        ],
      ]),
    consumersRemoved: (count) => ended.inc(count),
    endedTermsSearched: (overdueSeconds) => {
      oldestEndMs = performance.now() - overdueSeconds * 1000;
    },
    fleetDiffered: () => differences.inc(),
    scrape: () => {
      // Usually any client may scrape, so all requests that come during a scrape share its answer.
      underWay ??= scrape().finally(() => {
        underWay = undefined;
        ageBeforeScrape = undefined;
      });
      return underWay;
    },
  };
}

/** Makes the check of /readyz, for as long as a scrape waits for the database, and remembers its result. */
function openReadiness(check: () => Promise<unknown>): { check(): Promise<void>; isReady(): boolean } {
  let isReady = true; // else the service would not have started
  return {
    check: async () => {
      const answers = check().then(
        () => true,
        () => false,
      );
      isReady = await Promise.race([answers, sleep(databaseTimeoutMs, false, { ref: false })]);
    },
    isReady: () => isReady,
  };
}

/** Does work in turns, however much it is: all clients share one scrape. */
function inTurns<Result>(work: Pieces<Result>): Result | Promise<Result> {
  const turns = openTurns();
  const isOver = (rounds?: number): boolean => {
    turns.noteResult();
    return turns.isOver(rounds);
  };
  return inPieces(work, { ...turns, isOver });
}

const joined = (before: string, parts: readonly Buffer[], after: string): Buffer<ArrayBuffer> =>
  Buffer.concat([Buffer.from(before), ...parts, Buffer.from(after)]);

const outcomes = ['accepted', 'unauthorized', 'unavailable', 'busy'] as const;
/** The answers by which Keystone decides about a token. A 401 means that it refuses the service user. */
const goodStatuses: ReadonlySet<number> = new Set([200, 201, 404]);

/** Registers the metrics of a service that validates tokens at Keystone. */
function registerKeystone(register: Registry): KeystoneObserver {
  const registers = [register];
  const attempts = new Counter({
    name: 'placement_keystone_requests_total',
    help: 'Requests to Keystone, each repetition as well, by the status of the answer; none where there was no answer.',
    labelNames: ['status'],
    registers,
  });
  const durations = new Histogram({
    name: 'placement_keystone_request_duration_seconds',
    help: 'Time from a request to Keystone to its answer, or until it was ended without one.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const decided = new Counter({
    name: 'placement_keystone_decisions_total',
    help: 'Requests that Keystone, or what is remembered of its answers, has decided about, by the outcome.',
    labelNames: ['outcome'],
    registers,
  });
  let answeredMs = performance.now();
  registerGauges(register, [
    [
      'placement_keystone_answer_age_seconds',
      'Time since the last answer by which Keystone decided about a token; before the first one, since the start.',
      () => (performance.now() - answeredMs) / 1000,
    ],
  ]);
  // The series begin at 0, so that queries see the first event as an increase.
  for (const outcome of outcomes) decided.inc({ outcome }, 0);
  for (const status of ['200', 'none']) attempts.inc({ status }, 0);
  return {
    attempted: ({ status, seconds }) => {
      attempts.inc({ status: status === undefined ? 'none' : String(status) });
      durations.observe(seconds);
      if (status !== undefined && goodStatuses.has(status)) answeredMs = performance.now();
    },
    decided: (outcome) => decided.inc({ outcome }),
    countQueued: (size) =>
      registerGauges(register, [
        ['placement_keystone_queue_length', 'Token validations that wait for their turn to be sent to Keystone.', size],
      ]),
  };
}

let ofProcess: Registry | undefined;

/**
 * The metrics of this process: memory, CPU time, garbage collection, the event loop. They are collected once in a process, whatever it
 * opens: prom-client observes a process until it ends, and an observer keeps its whole registry in memory.
 */
function processMetrics(labels: Readonly<Record<string, string>>): Registry {
  if (ofProcess === undefined) {
    ofProcess = new Registry();
    collectDefaultMetrics({ register: ofProcess });
    // Sums of series that also exist by type. They are gauges with names of counters, which promtool reports as errors.
    for (const sum of ['handles', 'requests', 'resources']) ofProcess.removeSingleMetric(`nodejs_active_${sum}_total`);
  }
  ofProcess.setDefaultLabels(labels);
  return ofProcess;
}

/** Why requests and connections are refused before the app gets them. Metrics have a series for each. */
const refusalReasons = [
  'malformed',
  'head too long',
  'late',
  'host missing',
  'several hosts',
  'host or target invalid',
  'tunnel',
  'unknown expectation',
  'plain HTTP',
  'TLS on plain HTTP',
  'TLS handshake',
  'other host',
] as const;
/** One of these reasons. */
export type RefusedBefore = (typeof refusalReasons)[number];
