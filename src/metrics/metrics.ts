import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Database } from '../../db/connect.ts';
import { ClaimRefused } from '../claims/claim.ts';
import type { Claims } from '../claims/claims.ts';
import type { FleetKeeper } from '../fleet/keeper.ts';
import { version } from '../version.ts';
import { capacityText } from './capacity.ts';
import { type Gathering, textOf } from './gathering.ts';
import { registerState } from './state.ts';

/** One request, when it was answered. */
export type ObservedRequest = {
  readonly method: string;
  /** The path of the endpoint with its parameters as names, so that there are few; `none` where nothing is served. */
  readonly route: string;
  readonly status: number;
  /** `1.39`; empty where the request did not come so far. */
  readonly microversion: string;
  readonly seconds: number;
};

/** What the service tells Prometheus of itself. */
export type Metrics = {
  readonly contentType: string;
  observe(request: ObservedRequest): void;
  /** The same claims, counted by how they ended: `written`, the reason of a refusal, or `error`. */
  counting(claims: Claims): Claims;
  /** Counts a claim that lost a guard and is judged again, as `retried`. */
  readonly claimRetried: () => void;
  /** The text of a scrape: the figures of each process that serves the port, and the capacity in the fleet. */
  scrape(): Promise<string>;
};

/** A database that has not answered by now is taken for one that will not: Prometheus gives up after 10 s as a rule. */
const databasePatienceMs = 2_000;

/**
 * @param options.providerLimit of how many providers the capacity is told: -1 is all, 0 none.
 * @param options.gathering where this process is one of several that serve one port
 */
export function openMetrics(
  database: Database,
  fleet: FleetKeeper,
  options: { readonly providerLimit: number; readonly gathering?: Gathering | undefined },
): Metrics {
  const { gathering } = options;
  const register = new Registry();
  register.setDefaultLabels(gathering?.labels ?? {});
  gathering?.offer(async () => {
    const figures = await register.getMetricsAsJSON();
    // Whoever is scraped makes its own fleet fresh; so do the others, once they have told its age.
    if (underWay === undefined) fleet.fresh().catch(() => {});
    return figures;
  });
  const registers = [register];
  /** The scrape that this process was asked for, and how old the fleet was before it. */
  let underWay: Promise<string> | undefined;
  let ageBeforeScrape: number | undefined;
  collectDefaultMetrics({ register });
  // Sums of series that are there by type; their names are those of counters, which promtool complains of.
  for (const sum of ['handles', 'requests', 'resources']) register.removeSingleMetric(`nodejs_active_${sum}_total`);

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
  const claimed = new Counter({
    name: 'placement_claims_total',
    help: 'Writes of allocations, by how they ended; retried: each time that one lost a race and was judged again.',
    labelNames: ['outcome'],
    registers,
  });
  registerState(register, database, fleet, () => ageBeforeScrape ?? fleet.ageSeconds());

  const scrape = async (): Promise<string> => {
    // Before the scrape itself makes it fresh.
    ageBeforeScrape = fleet.ageSeconds();
    // Without the database there is no capacity to tell; what the process does is then wanted the most.
    const late = sleep(databasePatienceMs, undefined, { ref: false });
    const current = await Promise.race([fleet.fresh().catch(() => undefined), late]);
    const ofProcesses = await (gathering === undefined ? register.metrics() : textOf(await gathering.gather()));
    return current === undefined ? ofProcesses : ofProcesses + capacityText(current, options.providerLimit);
  };

  return {
    contentType: register.contentType,
    observe: ({ method, route, status, microversion, seconds }) => {
      requests.inc({ method, route, status, microversion });
      durations.observe({ method, route }, seconds);
    },
    counting: (claims) => ({
      ...claims,
      write: async (claim) => {
        try {
          await claims.write(claim);
          claimed.inc({ outcome: 'written' });
        } catch (error) {
          claimed.inc({ outcome: error instanceof ClaimRefused ? error.reason : 'error' });
          throw error;
        }
      },
    }),
    claimRetried: () => claimed.inc({ outcome: 'retried' }),
    scrape: () => {
      // Nobody needs a token for it: those who ask meanwhile share the answer.
      underWay ??= scrape().finally(() => {
        underWay = undefined;
        ageBeforeScrape = undefined;
      });
      return underWay;
    },
  };
}
