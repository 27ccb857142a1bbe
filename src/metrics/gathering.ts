import { AggregatorRegistry, type Registry } from 'prom-client';

/** The metrics of one process, as data. */
export type Figures = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** How each of several processes that serve one port can answer a scrape with the metrics of all of them. */
export type Gathering = {
  /**
   * Labels that distinguish the series of this process from those of the others. The series are not added up: a process
   * that is replaced would make the sum fall. Prometheus would take this for a restart of all processes, and count too
   * much.
   */
  readonly labels: Readonly<Record<string, string>>;
  /** Sets the function from which the other processes get the metrics of this one. */
  offer(figures: () => Promise<Figures>): void;
  /** The metrics of all processes. */
  gather(): Promise<readonly Figures[]>;
};

/**
 * The metrics of several processes in the text format of Prometheus, which requires all series of one name together.
 */
export function textOf(figures: readonly Figures[]): Promise<string> {
  // No two series have the same labels, so 'sum' keeps each of them as it is. Other aggregators leave some series out.
  const sideBySide = figures.map((ofProcess) => ofProcess.map((each) => ({ ...each, aggregator: 'sum' as const })));
  return AggregatorRegistry.aggregate(sideBySide).metrics();
}
