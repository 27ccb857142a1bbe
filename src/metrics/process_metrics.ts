import { collectDefaultMetrics, Registry } from 'prom-client';

let ofProcess: Registry | undefined;

/**
 * The metrics of this process: memory, CPU time, garbage collection, the event loop. They are collected once in a process, whatever it
 * opens: prom-client observes a process until it ends, and an observer keeps all that its registry refers to.
 */
export function processMetrics(labels: Readonly<Record<string, string>>): Registry {
  if (ofProcess === undefined) {
    ofProcess = new Registry();
    collectDefaultMetrics({ register: ofProcess });
    // These are sums of series that also exist by type. They are gauges with names of counters, which promtool reports as errors.
    for (const sum of ['handles', 'requests', 'resources']) ofProcess.removeSingleMetric(`nodejs_active_${sum}_total`);
  }
  ofProcess.setDefaultLabels(labels);
  return ofProcess;
}
