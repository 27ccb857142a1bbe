import { AggregatorRegistry, type Registry } from 'prom-client';

/** The metrics of one process, as data. */
export type Figures = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** The functions by which one process reports its metrics when any process is scraped. */
export type MetricSources = {
  readonly figures: () => Promise<Figures>;
  /** How many of each shape fit, in the text format: one process reports this for all processes. */
  readonly shapes: () => Promise<string>;
};

/** The answer to a scrape of several processes. */
export type Gathered = {
  /** The metrics of each process. */
  readonly figures: readonly Figures[];
  /** How many of each shape fit, as one of the processes has counted; empty where none could in time. */
  readonly shapes: string;
};

/** How each of several processes that serve one port can answer a scrape with the metrics of all of them. */
export type Gathering = {
  /**
   * Labels that distinguish the series of the processes. The series are not added up: a process
   * that is replaced would make the sum fall. Prometheus would take this for a restart of all processes, and count too
   * much.
   */
  readonly labels: Readonly<Record<string, string>>;
  /** Sets the functions by which the metrics of this process are read. */
  setSources(sources: MetricSources): void;
  /** The metrics of all processes. */
  gather(): Promise<Gathered>;
};

/**
 * The metrics of several processes in the text format of Prometheus, which requires all series of one name together.
 */
export function textOf(figures: readonly Figures[]): Promise<string> {
  // No two series have the same labels, so 'sum' keeps each of them as it is. Other aggregators leave some series out.
  const sideBySide = figures.map((ofProcess) => ofProcess.map((each) => ({ ...each, aggregator: 'sum' as const })));
  return AggregatorRegistry.aggregate(sideBySide).metrics();
}

/**
 * A scrape arrives some milliseconds early or late. A result that is this much of the interval old is made again, so that each
 * scrape at the interval has a new one.
 */
const outdatedPart = 0.9;

/**
 * Makes a result at most once in an interval: calls in between, and calls while it is made, get the same result. After a failure the
 * next call makes the result again.
 *
 * @param intervalMs 0 to share a result only between calls at the same time
 */
export function atIntervals<Result, Args extends readonly unknown[]>(
  intervalMs: number,
  make: (...args: Args) => Promise<Result>,
): (...args: Args) => Promise<Result> {
  let last: { readonly begunMs: number; readonly result: Promise<Result> } | undefined;
  let isUnderWay = false;
  return (...args) => {
    const nowMs = performance.now();
    if (last !== undefined && (isUnderWay || nowMs - last.begunMs < intervalMs * outdatedPart)) return last.result;
    isUnderWay = true;
    const result = make(...args);
    last = { begunMs: nowMs, result };
    result.then(
      () => {
        isUnderWay = false;
      },
      () => {
        isUnderWay = false;
        last = undefined;
      },
    );
    return result;
  };
}
