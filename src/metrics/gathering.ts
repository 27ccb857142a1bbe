import { AggregatorRegistry, type Registry } from 'prom-client';

/** The figures of one process, as data. */
export type Figures = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** How several processes that serve one port tell of all of them, whichever of them is asked. */
export type Gathering = {
  /**
   * By these the series of this process differ from those of the others. They are not added up: a process that is replaced
   * would make the sum fall, which Prometheus takes for a restart of all, and counts too much.
   */
  readonly labels: Readonly<Record<string, string>>;
  /** Says how the others get the figures of this process. */
  offer(figures: () => Promise<Figures>): void;
  /** The figures of all. */
  gather(): Promise<readonly Figures[]>;
};

/** The figures of several processes in the text format of Prometheus, in which all series of one name stand together. */
export function textOf(figures: readonly Figures[]): Promise<string> {
  // No two series have the same labels, so that adding up puts them side by side; other ways leave some of them out.
  const sideBySide = figures.map((ofProcess) => ofProcess.map((each) => ({ ...each, aggregator: 'sum' as const })));
  return AggregatorRegistry.aggregate(sideBySide).metrics();
}
